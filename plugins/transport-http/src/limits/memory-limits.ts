import type { PluginContext } from '@plugboard/kernel';
import type { Budget } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { HttpConfig } from '../config.js';
import { bodyMemoryOf, replyMemoryOf } from './config-limits.js';

/** Bytes up to which a body or a reply only needs to fit, whatever its caller has reserved. */
const SMALL = 64 * 1024;
/** Bytes up to which nothing is counted: they fit into the buffers of a connection. */
export const UNCOUNTED = 16 * 1024;
/** What grows takes this many bytes at a time. */
const STEP = 64 * 1024;

/** Memory reserved for a request or its reply, until `end`. */
export class MemoryReservation {
  readonly #budget: Budget;
  readonly #owner: readonly string[];
  #reserved = 0;
  #ended = false;

  constructor(budget: Budget, owner: readonly string[]) {
    this.#budget = budget;
    this.#owner = owner;
  }

  /** The option with the limit. */
  get setting(): string {
    return this.#budget.setting;
  }

  /** Takes more. Returns whether there was enough. */
  grow(bytes: number): boolean {
    if (this.#ended || !this.#budget.reserve(this.#owner, bytes, { small: this.#reserved + bytes <= SMALL })) return false;
    this.#reserved += bytes;
    return true;
  }

  /**
   * Changes the reservation, for a body or a reply that grows. Up to 16 KiB are not counted, more
   * in steps of 64 KiB. Returns whether there was enough; if not, nothing changes.
   */
  resize(bytes: number): boolean {
    const wanted = bytes <= UNCOUNTED ? 0 : Math.ceil(bytes / STEP) * STEP;
    if (wanted > this.#reserved) return this.grow(wanted - this.#reserved);
    if (wanted < this.#reserved) this.#budget.release(this.#owner, this.#reserved - wanted);
    this.#reserved = wanted;
    return true;
  }

  /** Gives everything back. */
  end(): void {
    this.#ended = true;
    if (this.#reserved > 0) this.#budget.release(this.#owner, this.#reserved);
    this.#reserved = 0;
  }
}

/** The budgets of memory for what callers send and receive. */
export class MemoryLimits {
  /** Bodies of requests in progress. */
  readonly bodies: Budget;
  /**
   * Complete replies that callers have not read yet, and replies that their routes count
   * themselves.
   */
  readonly replies: Budget;

  constructor(@inject(CONTEXT) { config, entry, budgets }: PluginContext<HttpConfig>) {
    this.bodies = budgets.create({
      name: 'request bodies in memory',
      unit: 'bytes',
      limit: bodyMemoryOf(config),
      setting: `${entry}.bodyMemory`,
    });
    this.replies = budgets.create({
      name: 'replies in memory',
      unit: 'bytes',
      limit: replyMemoryOf(config),
      setting: `${entry}.replyMemory`,
    });
  }

  /** Changes the limits. Reservations stay. */
  resize(config: HttpConfig): void {
    this.bodies.resize(bodyMemoryOf(config));
    this.replies.resize(replyMemoryOf(config));
  }
}
