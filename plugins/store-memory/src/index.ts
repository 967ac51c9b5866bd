import { definePlugin, parseDuration, parseSize, SessionStores } from '@plugboard/kernel';
import { configSchema } from './config.js';
import { MemoryStore } from './memory-store.js';

export { MemoryState } from './memory-state.js';

export default definePlugin({
  name: '@plugboard/store-memory',
  apiVersion: 1,
  summary: 'Keeps sessions in memory until the server stops',
  configSchema,
  register({ config, clock, log, contribute }) {
    const { ttl, maxSessions, maxBytes, maxSessionsPerProject, maxBytesPerProject, maxStateBytes } = config;
    const limits = {
      ttl: parseDuration(ttl),
      maxSessions,
      maxBytes: parseSize(maxBytes),
      maxSessionsPerProject,
      maxBytesPerProject: parseSize(maxBytesPerProject),
      state: { maxBytes: parseSize(maxStateBytes) },
    };
    const store = new MemoryStore(limits, clock, log);
    contribute(SessionStores, store);
    return { stop: () => store.clear() };
  },
});
