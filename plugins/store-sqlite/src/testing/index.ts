/** For tests that use the store in a process of its own, which they kill. */
export { openDatabase } from '../database/open-database.js';
export { SqliteStore } from '../sqlite-store.js';
