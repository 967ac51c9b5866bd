import { definePlugin } from '@plugboard/kernel';
import { ResponseServices } from '@plugboard/open-responses';
import { StreamEncoders } from '@plugboard/transport-chat-completions';
import { HttpRoutes } from '@plugboard/transport-http';
import { configSchema } from './config.js';
import { ResponseRoutes } from './response-routes.js';

export default definePlugin({
  name: '@plugboard/transport-responses',
  apiVersion: 1,
  summary: 'Answers POST /v1/responses, whole or as a stream, and stores the responses',
  configSchema,
  needs: ['responses'],
  register(ctx) {
    const services = ctx.extensions(ResponseServices);
    const { routes } = new ResponseRoutes(ctx.name, services, ctx.extensions(StreamEncoders));
    for (const route of routes) ctx.contribute(HttpRoutes, route, `${route.method} ${route.path}`);
  },
});
