import { definePlugin } from '@plugboard/kernel';
import { contributeResponses } from '@plugboard/open-responses';
import { formatError, StreamEncoders } from '@plugboard/openai-protocol';
import { ErrorFormatters, HttpRoutes } from '@plugboard/transport-http';
import { configSchema } from './config.js';
import { ResponseRoutes } from './response-routes.js';

export default definePlugin({
  name: '@plugboard/transport-responses',
  apiVersion: 1,
  summary: 'Answers POST /v1/responses, whole or as a stream, and stores the responses',
  configSchema,
  register(ctx) {
    ctx.contribute(ErrorFormatters, formatError);
    const { routes } = new ResponseRoutes(contributeResponses(ctx), ctx.extensions(StreamEncoders));
    for (const route of routes) ctx.contribute(HttpRoutes, route, `${route.method} ${route.path}`);
  },
});
