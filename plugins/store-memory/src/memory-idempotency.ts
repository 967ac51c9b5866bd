import type { Clock, IdempotencyKey, IdempotencyRecord, IdempotencyStore } from '@plugboard/kernel';
import { Shelf } from './shelf.js';

const DAY = 24 * 60 * 60_000;
/** As the contract of all stores says. */
export const MOST_KEYS = 100_000;

/** What was answered under idempotency keys. Its room is the store's: whoever puts something here makes room for it first, and evicts. */
export class MemoryIdempotency implements IdempotencyStore {
  readonly shelf: Shelf<IdempotencyRecord>;
  readonly #put: (record: IdempotencyRecord) => void;

  /** @param put puts a record in with `keep`, within the limits of the whole store. */
  constructor(clock: Clock, put: (record: IdempotencyRecord) => void) {
    this.shelf = new Shelf(DAY, clock, () => {});
    this.#put = put;
  }

  async get(key: IdempotencyKey): Promise<IdempotencyRecord | undefined> {
    return this.shelf.get(nameOf(key))?.value;
  }

  async put(record: IdempotencyRecord): Promise<void> {
    this.#put(record);
  }

  keep(record: IdempotencyRecord): void {
    this.shelf.put(nameOf(record.key), copyOf(record), sizeOf(record));
  }
}

/** What a record counts against the limit, in bytes of JSON. */
export function sizeOf(record: IdempotencyRecord | undefined): number {
  return record ? Buffer.byteLength(JSON.stringify(record)) : 0;
}

/** A record that nobody else holds and nobody can change. */
function copyOf({ key: { project, route, key }, fingerprint, result }: IdempotencyRecord): IdempotencyRecord {
  return Object.freeze({
    key: Object.freeze({ project, route, key }),
    fingerprint,
    result: result === 'began' ? result : Object.freeze({ text: result.text }),
  });
}

function nameOf({ project, route, key }: IdempotencyKey): string {
  return JSON.stringify([project, route, key]);
}
