import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { ResponseServices } from '@plugboard/open-responses';
import { StreamEncoders } from '@plugboard/transport-chat-completions';
import { HttpRoutes } from '@plugboard/transport-http';
import { TurnRoute } from '@plugboard/turn-routes';
import { configSchema } from './config.js';
import { ResponseRoutes } from './response-routes.js';
import { Responses } from './responses.js';

export default definePlugin({
  name: '@plugboard/transport-responses',
  apiVersion: 1,
  summary: 'Answers POST /v1/responses, whole or as a stream, and stores the responses',
  configSchema,
  needs: ['responses'],
  register(ctx) {
    const { name, clock } = ctx;
    const [services, encoders] = [ctx.extensions(ResponseServices), ctx.extensions(StreamEncoders)];
    const create = new TurnRoute(new Responses(name, services, encoders), {
      name,
      runtimes: ctx.extensions(AgentRuntimes),
      clock,
    });
    for (const route of [create, ...new ResponseRoutes(name, services, encoders).routes])
      ctx.contribute(HttpRoutes, route, `${route.method} ${route.path}`);
  },
});
