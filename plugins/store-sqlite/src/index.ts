import { definePlugin, parseDuration, parseSize, SessionStores } from '@plugboard/kernel';
import { checkConfig, configSchema } from './config.js';
import { SqliteStore } from './sqlite-store.js';

export default definePlugin({
  name: '@plugboard/store-sqlite',
  apiVersion: 1,
  summary: 'Keeps sessions in a SQLite file',
  configSchema,
  check: checkConfig,
  register({ config, resolvePath, clock, log, contribute }) {
    const quotas = { maxSessions: config.maxSessionsPerProject, maxBytes: parseSize(config.maxBytesPerProject) };
    const backup = config.backup && { path: resolvePath(config.backup.path), every: parseDuration(config.backup.every) };
    const store = new SqliteStore({ path: resolvePath(config.path), ttl: parseDuration(config.ttl), quotas, backup, clock, log });
    contribute(SessionStores, store);
    return {
      start: () => store.start(),
      stop: () => store.stop(),
      health: () => {
        const failure = store.failure();
        return failure ? { state: 'failed', reason: failure.message } : { state: 'ok' };
      },
    };
  },
});
