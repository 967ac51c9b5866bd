import { definePlugin, parseDuration } from '@plugboard/kernel';
import { StreamEncoders } from '@plugboard/transport-chat-completions';
import { configSchema } from './config.js';
import { SseEncoder } from './sse-encoder.js';

export default definePlugin({
  name: '@plugboard/transport-sse',
  apiVersion: 1,
  summary: 'Streams answers to `stream: true` as Server-Sent Events',
  configSchema,
  check: (config) =>
    parseDuration(config.keepAlive) >= 1_000
      ? []
      : [
          {
            path: ['keepAlive'],
            message: `"${config.keepAlive}" is too short: the minimum is 1s`,
          },
        ],
  register(ctx) {
    ctx.contribute(StreamEncoders, new SseEncoder(ctx.config), 'sse');
  },
});
