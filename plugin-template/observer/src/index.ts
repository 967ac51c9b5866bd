import { definePlugin } from '@plugboard/kernel';
import { configSchema } from './config.ts';
import { StarterObserver } from './starter-observer.ts';

export default definePlugin({
  name: 'plugboard-plugin-starter',
  apiVersion: 1,
  summary: 'Reports slow turns',
  configSchema,
  register(ctx) {
    const observer = new StarterObserver(ctx.config, ctx.clock, ctx.log);
    return { start: () => observer.start(), stop: () => observer.stop() };
  },
});
