import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
import { configSchema } from './config.js';
import { Models } from './models.js';

export default definePlugin({
  name: '@plugboard/transport-models',
  apiVersion: 1,
  summary: 'Lists the agents and models that a caller can use',
  configSchema,
  register(ctx) {
    const models = new Models(ctx.extensions(AgentRuntimes));
    for (const route of models.routes) ctx.contribute(HttpRoutes, route, route.path);
  },
});
