import { AgentRuntimes, definePlugin } from '@plugboard/kernel';
import { formatError, StreamEncoders } from '@plugboard/openai-protocol';
import { ErrorFormatters, HttpRoutes } from '@plugboard/transport-http';
import { ChatCompletions, ENCODERS, RUNTIMES } from './chat-completions.js';
import { configSchema } from './config.js';

export { type StreamEncoder, StreamEncoders } from '@plugboard/openai-protocol';

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
