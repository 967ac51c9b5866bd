import { definePlugin, ModelConnectors } from '@plugboard/kernel';
import { configSchema } from './config.ts';
import { StarterModel } from './starter-model.ts';

export default definePlugin({
  name: 'plugboard-model-starter',
  apiVersion: 1,
  summary: 'Connects to a model server that writes lines of JSON',
  configSchema,
  register(ctx) {
    ctx.contribute(ModelConnectors, new StarterModel(ctx.config));
  },
});
