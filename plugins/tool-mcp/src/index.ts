import { definePlugin, ToolSources } from '@plugboard/kernel';
import { Account } from '@plugboard/kernel/contracts';
import { configSchema } from './config.js';
import { McpTools } from './mcp-tools.js';
import { ChildProcessTransport } from './process/child-process-transport.js';
import { checkLaunch, launchOf } from './process/launch.js';

export default definePlugin({
  name: '@plugboard/tool-mcp',
  apiVersion: 1,
  summary: 'Offers the tools of an MCP server',
  configSchema,
  check: checkLaunch,
  register({ config, entry, resolvePath, clock, log, budgets, contribute }) {
    const launch = launchOf(config, resolvePath);
    const account = () => new Account(budgets.memory, undefined, entry);
    const newTransport = () => new ChildProcessTransport(launch, clock, log, account());
    const tools = new McpTools({ newTransport, forward: config.forward, entry, clock, log });
    contribute(ToolSources, tools);
    return tools;
  },
});
