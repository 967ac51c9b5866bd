import type { Clock } from '@plugboard/kernel';
import type { IdempotencyKey, IdempotencyRecord, IdempotencyStore } from '@plugboard/kernel/contracts';
import { ExpiringMap } from './expiring-map.js';

const DAY = 24 * 60 * 60_000;
/** Set by the contract of `IdempotencyStore`. */
export const MAX_RECORDS = 100_000;

/** Idempotency records. They share the store's memory budget. */
export class MemoryIdempotency implements IdempotencyStore {
  readonly records: ExpiringMap<IdempotencyRecord>;
  /** The fingerprints of the requests that run, by key. Unlike records, they are never evicted. */
  readonly #claims = new Map<string, string>();
  readonly #put: (record: IdempotencyRecord) => void;

  /** @param put adds a record with `add` and applies the limits of the store. */
  constructor(clock: Clock, put: (record: IdempotencyRecord) => void) {
    this.records = new ExpiringMap(DAY, clock);
    this.#put = put;
  }

  async claim(...[key, fingerprint, reserve]: Parameters<IdempotencyStore['claim']>): ReturnType<IdempotencyStore['claim']> {
    const name = mapKey(key);
    const running = this.#claims.get(name);
    if (running !== undefined) return { key, fingerprint: running, result: 'running' };
    const record = this.records.get(name)?.value;
    if (!record) this.#claims.set(name, fingerprint);
    else if (record.result !== 'began') reserve?.(Buffer.byteLength(record.result.text));
    return record;
  }

  async release(key: IdempotencyKey): Promise<void> {
    this.#claims.delete(mapKey(key));
  }

  async put(record: IdempotencyRecord): Promise<void> {
    this.#put(record);
  }

  /** An answer ends the claim of its key. */
  add(record: IdempotencyRecord): void {
    if (record.result !== 'began') this.#claims.delete(mapKey(record.key));
    this.records.set(mapKey(record.key), frozenCopy(record), recordBytes(record), record.key.project);
  }
}

/** Size of a record as JSON; 0 for none. */
export function recordBytes(record: IdempotencyRecord | undefined): number {
  return record ? Buffer.byteLength(JSON.stringify(record)) : 0;
}

function frozenCopy({ key: { project, route, key }, fingerprint, result }: IdempotencyRecord): IdempotencyRecord {
  return Object.freeze({
    key: Object.freeze({ project, route, key }),
    fingerprint,
    result: result === 'began' ? result : Object.freeze({ text: result.text }),
  });
}

function mapKey({ project, route, key }: IdempotencyKey): string {
  return JSON.stringify([project, route, key]);
}
