import { definePlugin, ToolSources } from '@plugboard/kernel';
import { configSchema } from './config.js';
import { McpTools } from './mcp-tools.js';
import { WIRES, wiresOf } from './wires.js';

export default definePlugin({
  name: '@plugboard/tool-mcp',
  apiVersion: 1,
  summary: 'Offers the model the tools of an MCP server',
  configSchema,
  register(ctx) {
    ctx.container.register(WIRES, { useValue: wiresOf(ctx) });
    const tools = ctx.container.resolve(McpTools);
    ctx.contribute(ToolSources, tools);
    return tools;
  },
});
