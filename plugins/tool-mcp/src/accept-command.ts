import type { PluginContext } from '@plugboard/kernel';
import { CommandError, type CommandFamily, type CommandTerminal } from '@plugboard/kernel/contracts';
import type { AcceptedFile, AcceptedServer } from './accepted/accepted-file.js';
import type { McpConfig } from './config.js';
import { connectOverHttp } from './connect.js';
import { AcceptedFileError } from './errors/errors.js';
import type { McpConnection } from './protocol/mcp-connection.js';
import { timeLimit } from './protocol/own-signal.js';
import { type ListedTool, listedTools } from './tools/listed-tools.js';
import { digestsOf, toolChanges } from './tools/tool-changes.js';

/** Milliseconds for connecting and reading the list. */
const LIMIT = 15_000;

/** What is accepted: the whole list, and the authorization server if there was a sign-in. */
interface AcceptedNow {
  readonly issuer?: string;
  readonly tools: ReadonlyMap<string, string>;
}

/** `plugboard tools accept`: accepts the tools of a server, and its authorization server. */
export function acceptCommand(context: PluginContext<McpConfig>, url: string, accepted: AcceptedFile): CommandFamily {
  return {
    summary: 'Accepts changed tools of an MCP server over HTTP',
    actions: {
      accept: {
        summary: 'Prints what an MCP server added, changed and removed since its tools were accepted, and accepts it',
        options: {},
        async run(_args, terminal) {
          let issuer: string | undefined;
          const trusted = { get: () => issuer, remember: (found: string) => (issuer = found) };
          const stopping = new AbortController();
          const events = { ended() {}, toolsChanged() {}, violation() {} };
          const connection = connectOverHttp(context, url, trusted)(events, stopping.signal);
          try {
            const tools = await readTools(connection, context, terminal);
            const now = { ...(issuer !== undefined && { issuer }), tools: digestsOf(tools) };
            report(context.entry, accepted.read(), now, terminal);
            accepted.accept(now);
          } catch (error) {
            throw error instanceof AcceptedFileError ? new CommandError(error.message) : error;
          } finally {
            await connection.close();
            stopping.abort(new Error('the command has ended'));
          }
          return 0;
        },
      },
    },
  };
}

async function readTools(
  connection: McpConnection,
  { clock }: PluginContext<McpConfig>,
  terminal: CommandTerminal,
): Promise<readonly ListedTool[]> {
  const limit = timeLimit(clock, LIMIT, `no answer for ${LIMIT / 1000} s`);
  try {
    await connection.open(limit.signal);
    const { listed, faultOf } = await connection.list(limit.signal);
    const skip = (name: string, reason: string) => terminal.note(`a tool was skipped: ${oneLine(name)}: ${reason}`);
    return listedTools(listed, skip, faultOf);
  } catch (error) {
    throw new CommandError(connection.redact(connection.failure(error, limit.signal.aborted)));
  } finally {
    limit.cancel();
  }
}

function report(entry: string, before: AcceptedServer, now: AcceptedNow, terminal: CommandTerminal): void {
  const { added = [], changed = [], removed = [] } = toolChanges(before.tools ?? new Map(), now.tools) ?? {};
  const earlier = before.issuer === undefined ? '' : `, not ${oneLine(before.issuer)}`;
  const lines = [
    ...added.map(({ name }) => `  added    ${oneLine(name)}`),
    ...changed.map(({ name }) => `  changed  ${oneLine(name)}`),
    ...removed.map((name) => `  removed  ${oneLine(name)}`),
    ...(now.issuer === undefined || now.issuer === before.issuer ? [] : [`  issuer   ${oneLine(now.issuer)}${earlier}`]),
  ];
  const counts = `${added.length} added, ${changed.length} changed, ${removed.length} removed`;
  terminal.print([lines.length === 0 ? `${entry}: nothing has changed` : `${entry}: ${counts}; accepted`, ...lines].join('\n'));
}

/** What a server calls something, for a terminal. */
function oneLine(text: string): string {
  return text.replace(/\p{C}/gu, '\u{fffd}').slice(0, 200);
}
