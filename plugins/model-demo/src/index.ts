import { definePlugin, ModelConnectors } from '@plugboard/kernel';
import { configSchema } from './config.js';
import { DemoModel } from './demo-model.js';

export default definePlugin({
  name: '@plugboard/model-demo',
  apiVersion: 1,
  summary: 'Simulates a model without an account: calls tools, and says that it is a stand-in',
  configSchema,
  register(ctx) {
    ctx.contribute(ModelConnectors, new DemoModel(ctx.config, ctx.clock, ctx.ids));
  },
});
