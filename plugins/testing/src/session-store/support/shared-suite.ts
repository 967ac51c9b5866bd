import assert from 'node:assert/strict';
import type { SessionStore } from '@plugboard/kernel';
import type { SharedStore } from '@plugboard/kernel/contracts';

/**
 * Adds a case with two stores over one empty database.
 * @param check receives both. `stop` closes the first one, like a server that stops.
 */
export type AddShared = (
  name: string,
  check: (one: SessionStore, two: SessionStore, stop: () => Promise<void>) => Promise<void>,
) => void;

export function sharedOf(store: SessionStore): SharedStore {
  assert.ok(store.shared, 'the store has no `shared`');
  return store.shared;
}
