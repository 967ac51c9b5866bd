import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
import { configSchema } from './config.js';
import { Health, RUNTIMES } from './health.js';

export default definePlugin({
  name: '@plugboard/transport-health',
  apiVersion: 1,
  summary: 'Tells probes whether the server lives and is ready',
  configSchema,
  register(ctx) {
    ctx.container.register(RUNTIMES, { useValue: ctx.extensions(AgentRuntimes) });
    for (const route of ctx.container.resolve(Health).routes) ctx.contribute(HttpRoutes, route, route.path);
  },
});
