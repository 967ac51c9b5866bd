import { definePlugin, ToolSources } from '@plugboard/kernel';
import { configSchema } from './config.js';
import { McpTools } from './mcp-tools.js';
import { MCP_TRANSPORTS, mcpTransports } from './mcp-transports.js';

export default definePlugin({
  name: '@plugboard/tool-mcp',
  apiVersion: 1,
  summary: 'Offers the tools of an MCP server',
  configSchema,
  register(ctx) {
    ctx.container.register(MCP_TRANSPORTS, { useValue: mcpTransports(ctx) });
    const tools = ctx.container.resolve(McpTools);
    ctx.contribute(ToolSources, tools);
    return tools;
  },
});
