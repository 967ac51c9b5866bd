import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { formatError, StreamEncoders } from '@plugboard/openai-protocol';
import { ErrorFormatters, HttpRoutes } from '@plugboard/transport-http';
import { ChatCompletions } from './chat-completions.js';
import { configSchema } from './config.js';

export { type StreamEncoder, StreamEncoders } from '@plugboard/openai-protocol';

export default definePlugin({
  name: '@plugboard/transport-chat-completions',
  apiVersion: 1,
  summary: 'Answers POST /v1/chat/completions, where `model` names an agent',
  configSchema,
  register(ctx) {
    ctx.contribute(ErrorFormatters, formatError);
    const route = new ChatCompletions({
      config: ctx.config,
      runtimes: ctx.extensions(AgentRuntimes),
      encoders: ctx.extensions(StreamEncoders),
      clock: ctx.clock,
      ids: ctx.ids,
    });
    ctx.contribute(HttpRoutes, route);
  },
});
