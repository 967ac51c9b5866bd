import { createRequire } from 'node:module';
import type { Pool } from 'undici';

const require = createRequire(import.meta.url);

/**
 * Creates a pool of connections to a model server. undici is loaded with the first one, and of undici
 * only the pool: the package's index also loads fetch, WebSocket, EventSource, caches and mocks, 88
 * more modules and 13 MiB, none of which a connection uses.
 */
export function createPool(origin: string, options: Pool.Options): Pool {
  const UndiciPool = require('undici/lib/dispatcher/pool.js') as typeof import('undici').Pool;
  return new UndiciPool(origin, options);
}
