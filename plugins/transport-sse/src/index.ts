import { definePlugin, parseDuration } from '@plugboard/kernel';
import { StreamEncoders } from '@plugboard/openai-protocol';
import { configSchema } from './config.js';
import { SseEncoder } from './sse-encoder.js';

export default definePlugin({
  name: '@plugboard/transport-sse',
  apiVersion: 1,
  summary: 'Lets transports answer `stream: true`, as Server-Sent Events',
  configSchema,
  check: (config) =>
    parseDuration(config.keepAlive) >= 1_000
      ? []
      : [
          {
            path: ['keepAlive'],
            message: `"${config.keepAlive}" is too short: every open stream would be written to that often; 1s is the least`,
          },
        ],
  register(ctx) {
    ctx.contribute(StreamEncoders, ctx.container.resolve(SseEncoder), 'sse');
  },
});
