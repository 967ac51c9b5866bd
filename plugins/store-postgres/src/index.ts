import { definePlugin, parseDuration, parseSize, SessionStores } from '@plugboard/kernel';
import { checkConfig, configSchema } from './config.js';
import { PostgresStore } from './postgres-store.js';

/** Milliseconds. What may be temporary is tried again for 10 s. */
const START_LIMIT = 20_000;

export default definePlugin({
  name: '@plugboard/store-postgres',
  apiVersion: 1,
  summary: 'Keeps sessions in PostgreSQL',
  configSchema,
  check: checkConfig,
  register({ config, clock, log, contribute }) {
    const { url, listenUrl, schema, poolSize } = config;
    const quotas = { maxSessions: config.maxSessionsPerProject, maxBytes: parseSize(config.maxBytesPerProject) };
    const lease = parseDuration(config.lease);
    const ttl = parseDuration(config.ttl);
    const store = new PostgresStore({ url, listenUrl, schema, poolSize, lease, ttl, quotas, clock, log });
    contribute(SessionStores, store);
    return {
      start: () => store.start(),
      stop: () => store.stop(),
      health: () => {
        const failure = store.failure();
        return failure ? { state: 'failed', reason: failure.message } : { state: 'ok' };
      },
      startLimit: START_LIMIT,
    };
  },
});
