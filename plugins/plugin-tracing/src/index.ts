import { definePlugin } from '@plugboard/kernel';
import { ModelInterceptors } from '@plugboard/kernel/contracts';
import { configSchema, problemsOf } from './config.js';
import { Tracing } from './tracing.js';

export default definePlugin({
  name: '@plugboard/plugin-tracing',
  apiVersion: 1,
  summary: 'Sends traces of requests, turns, model calls and tools to an OpenTelemetry receiver',
  configSchema,
  exclusive: true, // two that watch the same channels would trace everything twice
  check: (config) => problemsOf(config),
  register(ctx) {
    const tracing = new Tracing(ctx);
    ctx.contribute(ModelInterceptors, tracing.intercept);
    return tracing;
  },
});
