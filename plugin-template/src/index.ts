import { definePlugin, ToolSources } from '@plugboard/kernel';
import { configSchema } from './config.js';
import { DiceTool } from './dice-tool.js';

export default definePlugin({
  name: 'plugboard-tool-dice',
  apiVersion: 1,
  summary: 'Rolls dice for the model',
  configSchema,
  register(ctx) {
    ctx.contribute(ToolSources, new DiceTool(ctx.config, ctx.ids));
  },
});
