import { definePlugin, Interceptors } from '@plugboard/kernel';
import { configSchema } from './config.ts';
import { starterInterceptor } from './starter-interceptor.ts';

export default definePlugin({
  name: 'plugboard-plugin-starter',
  apiVersion: 1,
  summary: 'Refuses long conversations and logs the time and tokens of each turn',
  configSchema,
  register(ctx) {
    ctx.contribute(Interceptors, starterInterceptor(ctx.config, ctx.clock, ctx.log));
  },
});
