import { definePlugin, parseDuration, SessionStores } from '@plugboard/kernel';
import { configSchema } from './config.js';
import { SqliteStore } from './sqlite-store.js';

export default definePlugin({
  name: '@plugboard/store-sqlite',
  apiVersion: 1,
  summary: 'Keeps sessions in a SQLite file',
  configSchema,
  register({ config, resolvePath, clock, log, contribute }) {
    const store = new SqliteStore({ path: resolvePath(config.path), ttl: parseDuration(config.ttl), clock, log });
    contribute(SessionStores, store);
    return store;
  },
});
