import { definePlugin, ToolInterceptors } from '@plugboard/kernel';
import { configSchema } from './config.ts';
import { starterToolInterceptor } from './starter-tool-interceptor.ts';

export default definePlugin({
  name: 'plugboard-plugin-starter',
  apiVersion: 1,
  summary: 'Refuses tool calls with effects to some agents, and logs all others',
  configSchema,
  register(ctx) {
    ctx.contribute(ToolInterceptors, starterToolInterceptor(ctx.config, ctx.clock, ctx.log));
  },
});
