import type { PluginContext } from '@plugboard/kernel';
import { ChildProcessWire } from './child-process-wire.js';
import type { McpConfig } from './config.js';
import { launchOf } from './launch.js';
import type { Wire } from './wire.js';

/** Makes a new way to the entry's MCP server, for the first start and for each one after a breakdown. */
export type Wires = () => Wire;

/** The token for the entry's `Wires`. */
export const WIRES = Symbol('plugboard.tool-mcp.wires');

/** The one place that knows which kinds of wire there are. */
export function wiresOf({ config, resolvePath, clock, log }: PluginContext<McpConfig>): Wires {
  const launch = launchOf(config, resolvePath);
  return () => new ChildProcessWire(launch, clock, log);
}
