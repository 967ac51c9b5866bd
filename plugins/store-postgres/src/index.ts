import { definePlugin, parseDuration, parseSize, SessionStores } from '@plugboard/kernel';
import { checkConfig, configSchema } from './config.js';
import { PostgresStore } from './postgres-store.js';

export default definePlugin({
  name: '@plugboard/store-postgres',
  apiVersion: 1,
  summary: 'Keeps sessions in PostgreSQL',
  configSchema,
  check: checkConfig,
  register({ config, clock, log, contribute }) {
    const { url, schema, poolSize } = config;
    const quotas = { maxSessions: config.maxSessionsPerProject, maxBytes: parseSize(config.maxBytesPerProject) };
    const lease = parseDuration(config.lease);
    const store = new PostgresStore({ url, schema, poolSize, lease, ttl: parseDuration(config.ttl), quotas, clock, log });
    contribute(SessionStores, store);
    return {
      start: (signal) => store.start(signal),
      stop: () => store.stop(),
      health: () => {
        const failure = store.failure();
        return failure ? { state: 'failed', reason: failure.message } : { state: 'ok' };
      },
      startLimit: store.startLimit,
    };
  },
});
