import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { formatError } from '@plugboard/openai-protocol';
import { ErrorFormatters, HttpRoutes } from '@plugboard/transport-http';
import { configSchema } from './config.js';
import { Models, RUNTIMES } from './models.js';

export default definePlugin({
  name: '@plugboard/transport-models',
  apiVersion: 1,
  summary: 'Tells callers which agents and models they can name',
  configSchema,
  register(ctx) {
    ctx.contribute(ErrorFormatters, formatError);
    ctx.container.register(RUNTIMES, { useValue: ctx.extensions(AgentRuntimes) });
    for (const route of ctx.container.resolve(Models).routes) ctx.contribute(HttpRoutes, route, route.path);
  },
});
