import { SdkError, SdkErrorCode } from '@modelcontextprotocol/client';

/** A failure between Plugboard and an MCP server. What a tool reports itself is a result. */
export class McpServerError extends Error {
  override readonly name = 'McpServerError';
  readonly code: 'mcp_not_started' | 'mcp_not_running' | 'mcp_call_lost' | 'mcp_call_refused';
  /** Whether the call took effect is unknown, as the message says. */
  readonly effect: 'unknown' | undefined;

  constructor(code: McpServerError['code'], message: string, cause?: unknown, effect?: 'unknown') {
    super(message, { cause });
    this.code = code;
    this.effect = effect;
  }
}

/** The file of accepted tools cannot be used. */
export class AcceptedFileError extends Error {
  override readonly name = 'AcceptedFileError';

  /** @param reason is a clause. */
  constructor(path: string, reason: string, cause?: unknown) {
    super(`${path} ${reason}`, { cause });
  }
}

export function unreadableFile(path: string, cause: unknown): AcceptedFileError {
  return new AcceptedFileError(path, `cannot be read: ${messageOf(cause)}`, cause);
}

export function unwritableFile(path: string, cause: unknown): AcceptedFileError {
  const cure = 'let Plugboard write there, or set `acceptedFile`';
  return new AcceptedFileError(path, `cannot be written: ${messageOf(cause)}; ${cure}`, cause);
}

/** @param what is a clause. */
export function corruptFile(path: string, what: string): AcceptedFileError {
  const cure = 'restore it, or delete it to accept what the servers offer next';
  return new AcceptedFileError(path, `is not a file of accepted tools (${what}): ${cure}`);
}

/** For operators. The kernel adds the name of the entry. */
export function notStarted(reason: string, lastLines: readonly string[]): McpServerError {
  const printed = lastLines.length === 0 ? '' : `; its last output:\n  ${lastLines.join('\n  ')}`;
  return new McpServerError('mcp_not_started', `${reason}${printed}`);
}

export function noAnswerInTime(peer: string): string {
  const cure =
    'if it had to be downloaded first, install it beforehand; otherwise check that it is an MCP server with the stdio transport';
  return `${peer} runs, but did not answer in time: ${cure}`;
}

export function otherProtocol(peer: string, error: unknown): string {
  return `${peer} violated the MCP protocol: ${messageOf(error).slice(0, 500)}`;
}

/** The server answered the first request with an error of HTTP. @param text what it said. */
export function statusAtStart(peer: string, status: number, text: string): string {
  const cure = status === 401 || status === 403 ? 'check `headers` or `auth`' : 'check `url`, or the server';
  return `${peer} answered HTTP ${status}: ${cure}${text === '' ? '' : `; it said: ${text}`}`;
}

/** For the model. */
export function notRunning(entry: string): McpServerError {
  return new McpServerError(
    'mcp_not_running',
    `the MCP server of ${entry} has ended and is being restarted: try again in a few seconds`,
  );
}

/** The server of a URL is away. The call was not sent. */
export function notReached(entry: string, cause?: unknown): McpServerError {
  const message = `the MCP server of ${entry} cannot be reached: try again in a few seconds`;
  return new McpServerError('mcp_not_running', message, cause);
}

export function stopped(entry: string): McpServerError {
  return new McpServerError('mcp_not_running', `the MCP server of ${entry} has been stopped`);
}

export function callLost(entry: string, cause: unknown): McpServerError {
  const what = `the MCP server of ${entry} ended during this call and is being restarted`;
  return new McpServerError('mcp_call_lost', `${what}: whether the call took effect is unknown`, cause, 'unknown');
}

/** The connection to a server of a URL broke after the call was sent. */
export function callBroken(entry: string, cause: unknown): McpServerError {
  const what = `the connection to the MCP server of ${entry} broke during this call`;
  return new McpServerError('mcp_call_lost', `${what}: whether the call took effect is unknown`, cause, 'unknown');
}

/** The server answered with a status of HTTP. @param text what it said. */
export function answeredStatus(entry: string, status: number, text: string, cause: unknown): McpServerError {
  const isUnknown = status >= 500;
  const effect = isUnknown ? ': whether the call took effect is unknown' : '';
  const said = text === '' ? '' : `; it said: ${text}`;
  const message = `the MCP server of ${entry} answered HTTP ${status}${effect}${said}`;
  return new McpServerError('mcp_call_refused', message, cause, isUnknown ? 'unknown' : undefined);
}

/** The server began an MCP task in place of a result. */
export function answeredTask(entry: string): McpServerError {
  const message = `the MCP server of ${entry} answered with an MCP task, which is not supported: whether the call took effect is unknown`;
  return new McpServerError('mcp_call_refused', message, undefined, 'unknown');
}

/** The server answered with an error. @param text its message. */
export function callRefused(entry: string, text: string, cause: unknown): McpServerError {
  const message = text === '' ? `the MCP server of ${entry} refused the call without a reason` : text;
  return new McpServerError('mcp_call_refused', message, cause);
}

/** The arguments cannot be written as JSON. */
export function notSendable(cause: unknown): McpServerError {
  return new McpServerError('mcp_call_refused', 'the arguments are nested too deeply to be sent', cause);
}

/** The message of an error without the code that MCP SDKs, the server's included, put before it. */
export function messageOf(error: unknown): string {
  if (isSchemaError(error)) return 'its answer does not match the schema of MCP';
  return error instanceof Error ? error.message.replace(/^(MCP error -?\d+: ?)+/, '') : String(error);
}

/** The SDK lists all that does not match, over many lines. */
function isSchemaError(error: unknown): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.InvalidResult && error.message.includes('\n');
}
