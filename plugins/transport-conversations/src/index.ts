import { AgentRuntimes, definePlugin, parseSize } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
import { configSchema } from './config.js';
import { ConversationRoutes } from './routes/conversation-routes.js';
import { ItemRoutes } from './routes/item-routes.js';

export default definePlugin({
  name: '@plugboard/transport-conversations',
  apiVersion: 1,
  summary: 'Lists, reads, creates, changes, forks and deletes sessions at /v1/conversations',
  configSchema,
  register(ctx) {
    const runtimes = ctx.extensions(AgentRuntimes);
    const maxPageBytes = parseSize(ctx.config.maxPageBytes);
    for (const route of [
      ...new ConversationRoutes(runtimes, maxPageBytes).routes,
      ...new ItemRoutes(runtimes, maxPageBytes).routes,
    ]) {
      ctx.contribute(HttpRoutes, route, `${route.method} ${route.path}`);
    }
  },
});
