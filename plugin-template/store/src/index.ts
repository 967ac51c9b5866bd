import { definePlugin, SessionStores } from '@plugboard/kernel';
import { configSchema } from './config.ts';
import { StarterStore } from './starter-store.ts';

export default definePlugin({
  name: 'plugboard-store-starter',
  apiVersion: 1,
  summary: 'Stores sessions in one file',
  configSchema,
  register(ctx) {
    const store = new StarterStore(ctx.resolvePath(ctx.config.path), ctx.clock);
    ctx.contribute(SessionStores, store);
    return { start: () => store.open() };
  },
});
