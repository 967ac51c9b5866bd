import type { PluginContext } from '@plugboard/kernel';
import { ChildProcessTransport } from './child-process-transport.js';
import type { McpConfig } from './config.js';
import { launchOf } from './launch.js';
import type { McpTransport } from './mcp-transport.js';

/** Creates a transport to the entry's MCP server: for the first start and for each restart. */
export type McpTransports = () => McpTransport;

/** The token for the entry's `McpTransports`. */
export const MCP_TRANSPORTS = Symbol('plugboard.tool-mcp.transports');

/** Chooses the kind of transport by the configuration. */
export function mcpTransports({ config, resolvePath, clock, log }: PluginContext<McpConfig>): McpTransports {
  const launch = launchOf(config, resolvePath);
  return () => new ChildProcessTransport(launch, clock, log);
}
