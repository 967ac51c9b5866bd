import type { Budget, Budgets } from '@plugboard/kernel/contracts';
import { BUDGETS, CONFIG, ENTRY, inject, injectable } from '@plugboard/kernel/injection';
import type { HttpConfig } from '../config.js';
import { bodyMemoryOf, replyMemoryOf } from './config-limits.js';

/** Bytes up to which a body or a reply only needs to fit, whatever its caller holds already. */
const SMALL = 64 * 1024;

/** Memory that a request holds until its exchange ends. */
export class MemoryLease {
  readonly #budget: Budget;
  readonly #owner: readonly string[];
  #held = 0;
  #ended = false;

  constructor(budget: Budget, owner: readonly string[]) {
    this.#budget = budget;
    this.#owner = owner;
  }

  /** Takes more. Returns whether there was enough. */
  grow(bytes: number): boolean {
    if (this.#ended || !this.#budget.reserve(this.#owner, bytes, { small: this.#held + bytes <= SMALL })) return false;
    this.#held += bytes;
    return true;
  }

  /** Gives everything back. */
  end(): void {
    this.#ended = true;
    if (this.#held > 0) this.#budget.release(this.#owner, this.#held);
    this.#held = 0;
  }
}

/** The budgets of memory for what callers send and receive. */
@injectable()
export class MemoryLimits {
  /** Bodies of requests in progress. */
  readonly bodies: Budget;
  /** Complete replies that callers have not read yet. */
  readonly replies: Budget;

  constructor(@inject(CONFIG) config: HttpConfig, @inject(ENTRY) entry: string, @inject(BUDGETS) budgets: Budgets) {
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

  /** Changes the limits. What is held stays. */
  resize(config: HttpConfig): void {
    this.bodies.resize(bodyMemoryOf(config));
    this.replies.resize(replyMemoryOf(config));
  }
}
