import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
import { configSchema } from './config.ts';
import { StarterRoute } from './starter-route.ts';

export default definePlugin({
  name: 'plugboard-transport-starter',
  apiVersion: 1,
  summary: 'Answers plain text at POST /v1/ask',
  configSchema,
  register(ctx) {
    ctx.contribute(HttpRoutes, new StarterRoute(ctx.config, ctx.extensions(AgentRuntimes)));
  },
});
