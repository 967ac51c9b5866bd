import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
import { configSchema } from './config.js';
import { HealthRoutes } from './health.js';

export default definePlugin({
  name: '@plugboard/transport-health',
  apiVersion: 1,
  summary: 'Answers liveness and readiness probes',
  configSchema,
  register(ctx) {
    const health = new HealthRoutes(ctx.host, ctx.extensions(AgentRuntimes), ctx.log);
    for (const route of health.routes) ctx.contribute(HttpRoutes, route, route.path);
  },
});
