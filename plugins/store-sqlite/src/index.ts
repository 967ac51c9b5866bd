import { definePlugin, parseDuration, SessionStores } from '@plugboard/kernel';
import { keptBy, storeLifecycle } from '@plugboard/store-kit';
import { checkConfig, configSchema } from './config.js';
import { SqliteStore } from './sqlite-store.js';

export default definePlugin({
  name: '@plugboard/store-sqlite',
  apiVersion: 1,
  summary: 'Keeps sessions in a SQLite file',
  configSchema,
  check: checkConfig,
  register({ config, resolvePath, clock, log, contribute }) {
    const backup = config.backup && { path: resolvePath(config.backup.path), every: parseDuration(config.backup.every) };
    const store = new SqliteStore({ path: resolvePath(config.path), ...keptBy(config), backup, clock, log });
    contribute(SessionStores, store);
    return storeLifecycle(store);
  },
});
