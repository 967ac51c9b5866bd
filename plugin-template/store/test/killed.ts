/**
 * A process that writes to a store, in the file that its argument names, until it is killed.
 * Without an argument it does nothing.
 */
import { ManualClock, writeUntilKilled } from '@plugboard/testing';
import { StarterStore } from '../src/starter-store.ts';

const [, , path] = process.argv;
if (path !== undefined) {
  const store = new StarterStore(path, new ManualClock(Date.now()));
  await store.open();
  await writeUntilKilled(store);
}
