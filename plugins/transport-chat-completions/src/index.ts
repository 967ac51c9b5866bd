import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
import { TurnRoute } from '@plugboard/turn-routes';
import { StreamEncoders } from './answer/stream-encoder.js';
import { ChatCompletions } from './chat-completions.js';
import { configSchema } from './config.js';

export { requireStreamEncoder, type StreamEncoder, StreamEncoders } from './answer/stream-encoder.js';

export default definePlugin({
  name: '@plugboard/transport-chat-completions',
  apiVersion: 1,
  summary: 'Answers POST /v1/chat/completions, where `model` names an agent',
  configSchema,
  register(ctx) {
    const { name, config, clock, ids } = ctx;
    const runtimes = ctx.extensions(AgentRuntimes);
    const dialect = new ChatCompletions({ config, encoders: ctx.extensions(StreamEncoders), clock, ids });
    ctx.contribute(HttpRoutes, new TurnRoute(dialect, { name, runtimes, clock }));
  },
});
