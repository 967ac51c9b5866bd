import { definePlugin, ToolSources } from '@plugboard/kernel';
import { configSchema } from './config.ts';
import { StarterTool } from './starter-tool.ts';

export default definePlugin({
  name: 'plugboard-tool-starter',
  apiVersion: 1,
  summary: 'Rolls dice for the model',
  configSchema,
  register(ctx) {
    ctx.contribute(ToolSources, new StarterTool(ctx.config, ctx.ids));
  },
});
