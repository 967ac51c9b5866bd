import { hash } from 'node:crypto';
import type { Clock, PluginContext } from '@plugboard/kernel';
import type { SharedStore, Timer } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { type RateCounter, RequestRates } from '../../engine/limits/request-rates.js';
import { SessionStorage } from './session-storage.js';

/** Milliseconds between two questions to the store. */
const INTERVAL = 1_000;

/** What this server has added to a bucket and the store does not know yet. */
interface Added {
  readonly perMinute: number;
  readonly requests: number;
}

/**
 * Counts requests over all servers that share the store. Each admits by what it knows: its own
 * requests, and, once it has asked, those of others. It asks at once, and then at most once a
 * second, for all buckets that it has added to. Without an answer it goes on with what it knows.
 */
export class SharedRates implements RateCounter {
  readonly #storage: SessionStorage;
  readonly #rates: RequestRates;
  readonly #clock: Clock;
  #added = new Map<string, Added>();
  #askedAt = Number.NEGATIVE_INFINITY;
  #isAsking = false;
  #count: SharedStore['count'] = async () => [];
  #timer: Timer | undefined;

  constructor(
    @inject(CONTEXT) { clock }: PluginContext,
    @inject(SessionStorage) storage: SessionStorage,
    @inject(RequestRates) rates: RequestRates,
  ) {
    this.#storage = storage;
    this.#rates = rates;
    this.#clock = clock;
  }

  start(): void {
    const { shared } = this.#storage.store;
    if (!shared) return;
    this.#count = shared.count.bind(shared);
    this.#rates.counter = this;
  }

  add(name: string, perMinute: number): void {
    this.#add(name, { perMinute, requests: 1 });
    this.#askSoon();
  }

  stop(): void {
    this.#rates.counter = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #add(name: string, { perMinute, requests }: Added): void {
    this.#added.set(name, { perMinute, requests: requests + (this.#added.get(name)?.requests ?? 0) });
  }

  #askSoon(): void {
    if (this.#isAsking || this.#timer) return;
    const wait = this.#askedAt + INTERVAL - this.#clock.monotonic();
    if (wait <= 0) void this.#ask();
    else this.#timer = this.#clock.after(wait, () => void this.#ask());
  }

  /** Never rejects. */
  async #ask(): Promise<void> {
    this.#timer = undefined;
    this.#isAsking = true;
    this.#askedAt = this.#clock.monotonic();
    const asked = [...this.#added];
    this.#added = new Map();
    try {
      const lacking = await this.#count(asked.map(([name, added]) => ({ name: hash('sha256', name), ...added })));
      for (const [index, [name]] of asked.entries()) {
        // What was admitted meanwhile comes on top.
        this.#rates.learn(name, (lacking[index] ?? 0) + (this.#added.get(name)?.requests ?? 0));
      }
    } catch {
      for (const [name, added] of asked) this.#add(name, added); // the store's health says why
    }
    this.#isAsking = false;
    if (this.#added.size > 0 && this.#rates.counter) this.#askSoon();
  }
}
