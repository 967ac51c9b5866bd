import type { IdempotencyKey, IdempotencyRecord, IdempotencyStore } from '@plugboard/kernel/contracts';

/** A key that this process has claimed, or for which it asks the store. */
interface Claim {
  readonly fingerprint: string;
  /** Settles when the store has answered. */
  readonly asking?: Promise<unknown>;
}

type Found = Awaited<ReturnType<IdempotencyStore['claim']>>;

/** The idempotency keys that requests of this process have claimed. */
export class LocalClaims {
  readonly #claims = new Map<string, Claim>();

  /**
   * Claims a key here, then in the store. Requests with the same key wait while one asks.
   *
   * @param ask returns what the store has. Undefined: nothing has the key, or it is claimed there.
   */
  async claim(key: IdempotencyKey, fingerprint: string, ask: () => Promise<Found> | Found): Promise<Found> {
    const name = nameOf(key);
    for (let other = this.#claims.get(name); other; other = this.#claims.get(name)) {
      if (!other.asking) return { key, fingerprint: other.fingerprint, result: 'running' };
      await other.asking;
    }
    return this.#ask(name, fingerprint, async () => {
      const found = await ask();
      if (!found) this.#claims.set(name, { fingerprint });
      return found;
    });
  }

  /**
   * Ends a claim without an answer.
   *
   * @param free does so in the store. If it fails, this process can claim the key again.
   */
  async release(key: IdempotencyKey, free: () => Promise<void>): Promise<void> {
    const name = nameOf(key);
    let claim = this.#claims.get(name);
    for (; claim?.asking; claim = this.#claims.get(name)) await claim.asking;
    if (claim) await this.#ask(name, claim.fingerprint, free);
  }

  /** A record was stored. An answer ends the claim of its key. */
  stored(record: IdempotencyRecord | undefined): void {
    if (record && record.result !== 'began') this.#claims.delete(nameOf(record.key));
  }

  /** Asks the store. Unless that claims the key, it has no claim afterwards. */
  async #ask<T>(name: string, fingerprint: string, ask: () => Promise<T>): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const claim = { fingerprint, asking: promise };
    this.#claims.set(name, claim);
    try {
      return await ask();
    } finally {
      if (this.#claims.get(name) === claim) this.#claims.delete(name);
      resolve();
    }
  }
}

/** A unique text for the three values. */
function nameOf({ project, route, key }: IdempotencyKey): string {
  return JSON.stringify([project, route, key]);
}
