import { AgentRuntimes, definePlugin, ToolSources } from '@plugboard/kernel';
import { suggestion } from '@plugboard/kernel/contracts';
import { AgentTool } from './agent-tool.js';
import { configSchema } from './config.js';

export default definePlugin({
  name: '@plugboard/tool-agent',
  apiVersion: 1,
  summary: 'Lets an agent ask another agent',
  configSchema,
  check({ agent }, { entries }) {
    const agents = entries('agents');
    if (agents.includes(agent)) return [];
    return [{ path: ['agent'], message: `unknown agent "${agent}"${suggestion(agent, agents)}` }];
  },
  register(ctx) {
    ctx.contribute(ToolSources, new AgentTool(ctx.name, ctx.config, ctx.late(AgentRuntimes)));
  },
});
