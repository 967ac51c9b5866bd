import { statSync } from 'node:fs';
import type { Launch } from './launch.js';

/** What goes wrong between Plugboard and an MCP server. What the server's tools say of themselves is none of these. */
export class McpServerError extends Error {
  override readonly name = 'McpServerError';
  readonly code: 'mcp_not_started' | 'mcp_not_running' | 'mcp_call_lost' | 'mcp_call_refused';

  constructor(code: McpServerError['code'], message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}

/** For operators. The kernel puts the entry's name before it. */
export function notStarted(why: string, lastLines: readonly string[]): McpServerError {
  const printed = lastLines.length === 0 ? '' : `; it printed last:\n  ${lastLines.join('\n  ')}`;
  return new McpServerError('mcp_not_started', `${why}${printed}`);
}

export function noAnswerInTime(peer: string): string {
  const cure =
    'if it first had to be downloaded, install it beforehand, else check that it is one that speaks over standard input and output';
  return `${peer} runs, but has not answered as an MCP server in time; ${cure}`;
}

export function otherProtocol(peer: string, error: unknown): string {
  return `${peer} does not speak MCP as it should: ${wordsOf(error)}`;
}

/** Why a program could not be run at all. The system says ENOENT of three different things. */
export function cannotRun({ command, cwd }: Launch, error: NodeJS.ErrnoException): string {
  const isPath = /[/\\]/.test(command);
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory())
    return `"${command}" cannot run in ${cwd}, which is no folder (cwd)`;
  if (error.code === 'ENOENT' && /\s/.test(command))
    return `"${command}" was not found; arguments do not stand in command but in args`;
  if (error.code === 'ENOENT' && !isPath) return `"${command}" was not found on the PATH; install it, or write its path`;
  if (error.code === 'ENOENT' && statSync(command, { throwIfNoEntry: false }))
    return `"${command}" names an interpreter in its first line that was not found`;
  if (error.code === 'ENOENT') return `"${command}" does not exist`;
  if (error.code === 'EACCES') return `"${command}" may not be run; make it executable, or let its interpreter be the command`;
  return `"${command}" could not be run: ${error.message}`;
}

/** For the model, and whoever reads along. */
export function notRunning(entry: string): McpServerError {
  return new McpServerError(
    'mcp_not_running',
    `the MCP server of ${entry} has ended and is being restarted; try again in a few seconds`,
  );
}

export function stopped(entry: string): McpServerError {
  return new McpServerError('mcp_not_running', `the MCP server of ${entry} has been stopped`);
}

export function callLost(entry: string, cause: unknown): McpServerError {
  const what = `the MCP server of ${entry} ended during this call and is being restarted`;
  return new McpServerError('mcp_call_lost', `${what}; whether the call has taken effect is not known`, cause);
}

/** The server answered, but not with a result: its own words say why. */
export function callRefused(entry: string, words: string, cause: unknown): McpServerError {
  const message = words === '' ? `the MCP server of ${entry} refused the call and did not say why` : words;
  return new McpServerError('mcp_call_refused', message, cause);
}

/** The arguments cannot be written as JSON. */
export function notSendable(cause: unknown): McpServerError {
  return new McpServerError('mcp_call_refused', 'the arguments are nested too deeply to be sent', cause);
}

/** A JSON-RPC error's words without the numbers that the SDKs, a server's own among them, put before them. */
export function wordsOf(error: unknown): string {
  if (isMisshapen(error)) return 'its answer has not the form that MCP prescribes';
  return error instanceof Error ? error.message.replace(/^(MCP error -?\d+: ?)+/, '') : String(error);
}

/** What the SDK throws where an answer does not fit its schema: a list of faults, meant for programs, and not always an `Error`. */
function isMisshapen(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'issues' in error;
}
