import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { formatError } from '@plugboard/openai-protocol';
import { ErrorFormatters, HttpRoutes } from '@plugboard/transport-http';
import { configSchema } from './config.js';
import { ConversationRoutes, RUNTIMES } from './conversation-routes.js';
import { ItemRoutes } from './item-routes.js';

export default definePlugin({
  name: '@plugboard/transport-conversations',
  apiVersion: 1,
  summary: 'Lets callers list, read, create, change, fork and delete their sessions',
  configSchema,
  register(ctx) {
    ctx.contribute(ErrorFormatters, formatError);
    ctx.container.register(RUNTIMES, { useValue: ctx.extensions(AgentRuntimes) });
    const { routes } = ctx.container.resolve(ConversationRoutes);
    for (const route of [...routes, ...ctx.container.resolve(ItemRoutes).routes]) {
      ctx.contribute(HttpRoutes, route, `${route.method} ${route.path}`);
    }
  },
});
