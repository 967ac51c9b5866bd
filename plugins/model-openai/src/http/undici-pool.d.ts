/**
 * undici's pool by itself. The package's index also loads fetch, WebSocket, EventSource, caches and
 * mocks: 88 more modules and 13 MiB, none of which a connection uses.
 */
declare module 'undici/lib/dispatcher/pool.js' {
  import { Pool } from 'undici';
  export default Pool;
}
