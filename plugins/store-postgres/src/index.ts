import { definePlugin, parseDuration, SessionStores } from '@plugboard/kernel';
import { keptBy, storeLifecycle } from '@plugboard/store-kit';
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
    const lease = parseDuration(config.lease);
    const store = new PostgresStore({ url, listenUrl, schema, poolSize, lease, ...keptBy(config), clock, log });
    contribute(SessionStores, store);
    return { ...storeLifecycle(store), startLimit: START_LIMIT };
  },
});
