import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
import { AgentRoutes } from './agent-routes.js';
import { configSchema } from './config.js';

export default definePlugin({
  name: '@plugboard/transport-agents',
  apiVersion: 1,
  summary: 'Describes agents and runs their tools by hand at /v1/agents',
  configSchema,
  register(ctx) {
    const { routes } = new AgentRoutes(ctx.extensions(AgentRuntimes));
    for (const route of routes) ctx.contribute(HttpRoutes, route, `${route.method} ${route.path}`);
  },
});
