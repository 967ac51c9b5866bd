/** For tests that use the store in a process of its own, which they kill. */
export { PostgresStore } from '../postgres-store.js';
