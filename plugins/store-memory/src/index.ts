import { definePlugin, SessionStores } from '@plugboard/kernel';
import { configSchema } from './config.js';
import { MemoryStore } from './memory-store.js';

export default definePlugin({
  name: '@plugboard/store-memory',
  apiVersion: 1,
  summary: 'Keeps sessions in memory, for as long as the server runs',
  configSchema,
  register(ctx) {
    const store = ctx.container.resolve(MemoryStore);
    ctx.contribute(SessionStores, store);
    return { stop: () => store.stop() };
  },
});
