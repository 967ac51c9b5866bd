import type { Budget } from '../../host/base/budget.js';
import type { TimeSlices } from '../../host/base/time-slices.js';
import type { Principal } from '../callers/principal.js';
import { TurnError } from '../events/event.js';

/**
 * Bytes that an account takes from the budget at a time. The first of these are small: they have a
 * share of their own, so that a small request is served beside large ones.
 */
const STEP = 64 * 1024;
/**
 * How many times a byte of messages is in memory: as values, as JSON text, and in the request to
 * the model or the reply.
 */
const COPIES = 3;
/** Seconds after which a caller may try again. */
const RETRY_AFTER = 5;

/**
 * What one request and its turn take of the server, counted for their caller: memory, and time of
 * the event loop.
 *
 * 1. A transport opens it when the request begins to arrive, and passes it to `run` with the turn.
 *    A turn that comes without one has its own.
 * 2. Code reserves what it is about to hold for the request: the body and its values, what it
 *    refers to, the history, the answer as it grows, the reply.
 * 3. Code that needs what was reserved is a holder. When the last one has left, all of it is given
 *    back.
 * 4. Before work that may be long, `timeSlice` waits until it is the caller's turn. `goOn` counts
 *    work that follows a wait, such as that of a turn between its store and its model.
 *
 * @public
 */
export class Account {
  readonly #budget: Budget;
  readonly #owner: readonly string[];
  readonly #slices: TimeSlices | undefined;
  /** Bytes that were reserved. */
  #reserved = 0;
  /** Bytes that were taken from the budget: whole steps. */
  #taken = 0;
  /** Bytes of those that were taken as small. */
  #small = 0;
  #holders = 0;

  /**
   * @param budget `ctx.budgets.memory`.
   * @param address tells callers without an identity apart.
   * @param slices `ctx.budgets.time`. Without it, nothing waits.
   */
  constructor(budget: Budget, principal: Principal | undefined, address = '', slices?: TimeSlices) {
    this.#budget = budget;
    this.#slices = slices;
    const { project, tokenId, subject, token } = principal ?? {};
    const caller = tokenId ?? subject ?? token;
    this.#owner = project === undefined || caller === undefined ? ['', address] : [project, caller];
  }

  /** The memory that messages take. @param bytes their size as JSON. */
  static costOf(bytes: number): number {
    return COPIES * bytes;
  }

  /** The caller, as the budget knows it: two accounts of one caller have the same. */
  get owner(): readonly string[] {
    return this.#owner;
  }

  /** The option with the limit, as messages name it: `limits.memory`. */
  get setting(): string {
    return this.#budget.setting;
  }

  /** The most that it can hold while no other account holds anything. */
  get limit(): number {
    return this.#budget.share(this.#owner.length);
  }

  /** Bytes that are reserved. */
  get reserved(): number {
    return this.#reserved;
  }

  /** Adds a holder. Returns what it calls when it has left; further calls do nothing. */
  hold(): () => void {
    this.#holders++;
    let isHolder = true;
    return () => {
      if (!isHolder) return;
      isHolder = false;
      this.#holders--;
      if (this.#holders === 0) this.release(this.#reserved);
    };
  }

  /** Reserves bytes. Returns whether there was enough; if not, nothing changes. */
  reserve(bytes: number): boolean {
    if (this.#holders === 0) return false;
    const total = this.#reserved + bytes;
    const missing = stepsFor(total) - this.#taken;
    if (missing > 0) {
      const small = total <= STEP;
      if (!this.#budget.reserve(this.#owner, missing, { small })) return false;
      this.#taken += missing;
      if (small) this.#small = missing;
    }
    this.#reserved = total;
    return true;
  }

  /** Reserves bytes. @throws TurnError `overloaded` if there are not enough. */
  require(bytes: number): void {
    if (!this.reserve(bytes)) throw this.shortage();
  }

  /** The error for a caller whose request does not fit into what is free. */
  shortage(): TurnError {
    return new TurnError(
      'overloaded',
      `The memory for requests and answers is in use (\`${this.setting}\`). Try again in a few seconds, or send smaller requests.`,
      { retryAfter: RETRY_AFTER },
    );
  }

  /** Reserves bytes as soon as there are enough. @throws the signal's reason if it aborts first. */
  async wait(bytes: number, signal: AbortSignal): Promise<void> {
    const missing = stepsFor(bytes);
    await this.#budget.wait(this.#owner, missing, signal);
    this.#taken += missing;
    this.#reserved += bytes;
    if (this.#holders === 0) this.release(this.#reserved);
  }

  /** Gives back bytes that are no longer held. */
  release(bytes: number): void {
    this.#reserved -= Math.min(bytes, this.#reserved);
    const spare = this.#taken - stepsFor(this.#reserved);
    if (spare <= 0) return;
    this.#taken -= spare;
    // What is left is what was taken first.
    const small = Math.max(0, this.#small - this.#taken);
    this.#small -= small;
    if (spare > small) this.#budget.release(this.#owner, spare - small);
    if (small > 0) this.#budget.release(this.#owner, small, { small: true });
  }

  /**
   * Waits until it is the caller's turn to use the event loop: the one that used least of the last
   * second is next (S-71). Undefined if that is now. The work must begin in the same round of the
   * event loop.
   */
  timeSlice(): Promise<void> | undefined {
    return this.#slices?.next(this.#owner.join(' '));
  }

  /** Counts what work for the caller uses of the event loop from here, after a wait. */
  goOn(): void {
    this.#slices?.goOn(this.#owner.join(' '));
  }
}

function stepsFor(bytes: number): number {
  return Math.ceil(bytes / STEP) * STEP;
}
