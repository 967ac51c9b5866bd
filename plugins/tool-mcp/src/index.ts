import { definePlugin, type PluginContext, ToolSources } from '@plugboard/kernel';
import { Account } from '@plugboard/kernel/contracts';
import { checkConfig } from './check-config.js';
import { configSchema, type McpConfig } from './config.js';
import { HttpConnection } from './http/http-connection.js';
import { KnownRevision } from './http/known-revision.js';
import { redactorOf } from './http/secrets.js';
import { McpTools } from './mcp-tools.js';
import { ChildProcessTransport } from './process/child-process-transport.js';
import { launchOf } from './process/launch.js';
import { Connection } from './protocol/connection.js';
import type { ConnectionEvents, McpConnection } from './protocol/mcp-connection.js';

export default definePlugin({
  name: '@plugboard/tool-mcp',
  apiVersion: 1,
  summary: 'Offers the tools of an MCP server',
  configSchema,
  check: checkConfig,
  register(context) {
    const { config, entry, clock, log, ids, contribute } = context;
    const isRemote = config.url !== undefined;
    const tools = new McpTools({
      connect: connector(context),
      runs: isRemote ? 'elsewhere' : 'here',
      jitter: () => (isRemote ? ids.fraction() : 0),
      forward: config.forward,
      isKeyed: config.keyed ?? false,
      entry,
      clock,
      log,
    });
    contribute(ToolSources, tools);
    return tools;
  },
});

/** Connects over HTTP to the server of a URL, or runs the server of a command. */
function connector(context: PluginContext<McpConfig>): (events: ConnectionEvents, stopping: AbortSignal) => McpConnection {
  const { config, entry, resolvePath, clock, log, ids, budgets } = context;
  const newAccount = () => new Account(budgets.memory, undefined, entry);
  if (config.url !== undefined) {
    const url = new URL(config.url);
    const { headers = {} } = config;
    const revision = new KnownRevision(clock);
    const options = { url, headers, revision, entry, clock, ids, newAccount, redact: redactorOf(url, headers) };
    return (events, stopping) => new HttpConnection({ ...options, stopping }, events);
  }
  const launch = launchOf(config.command ?? '', config, resolvePath);
  return (events) => new Connection(new ChildProcessTransport(launch, clock, log, newAccount()), events);
}
