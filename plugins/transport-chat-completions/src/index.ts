import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { HttpRoutes } from '@plugboard/transport-http';
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
    const route = new ChatCompletions({
      name: ctx.name,
      config: ctx.config,
      runtimes: ctx.extensions(AgentRuntimes),
      encoders: ctx.extensions(StreamEncoders),
      clock: ctx.clock,
      ids: ctx.ids,
    });
    ctx.contribute(HttpRoutes, route);
  },
});
