import { AgentRuntimes, definePlugin, parseSize } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
import { ApprovalRoutes } from './approval-routes.js';
import { configSchema } from './config.js';

export default definePlugin({
  name: '@plugboard/transport-approvals',
  apiVersion: 1,
  summary: 'Lists and decides tool calls that wait for approval at /v1/approvals',
  configSchema,
  register(ctx) {
    const { routes } = new ApprovalRoutes(ctx.extensions(AgentRuntimes), parseSize(ctx.config.maxPageBytes));
    for (const route of routes) ctx.contribute(HttpRoutes, route, `${route.method} ${route.path}`);
  },
});
