import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { formatError } from '@plugboard/openai-protocol';
import { ErrorFormatters, HttpRoutes } from '@plugboard/transport-http';
import { StreamEncoders } from './answer/stream-encoder.js';
import { ChatCompletions, ENCODERS, RUNTIMES } from './chat-completions.js';
import { configSchema } from './config.js';

export { type StreamEncoder, StreamEncoders } from './answer/stream-encoder.js';

export default definePlugin({
  name: '@plugboard/transport-chat-completions',
  apiVersion: 1,
  summary: 'Answers POST /v1/chat/completions, where `model` names an agent',
  configSchema,
  register(ctx) {
    ctx.contribute(ErrorFormatters, formatError);
    ctx.container.register(RUNTIMES, { useValue: ctx.extensions(AgentRuntimes) });
    ctx.container.register(ENCODERS, { useValue: ctx.extensions(StreamEncoders) });
    ctx.contribute(HttpRoutes, ctx.container.resolve(ChatCompletions));
  },
});
