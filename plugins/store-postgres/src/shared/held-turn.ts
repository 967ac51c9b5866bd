import { type InterruptedTurn, LeaseEnded, type SessionLease } from '@plugboard/kernel/contracts';
import type { Replica } from '../database/replica.js';

/** A turn of this server that is in line, or has the lease of its session. */
export class HeldTurn implements SessionLease {
  readonly #replica: Replica;
  /** The row of the server that the turn is in line with: a later one is another server's. */
  readonly row: number;
  readonly #ended = new AbortController();
  /** Set with the lease. */
  version = 0;
  interrupted: InterruptedTurn | undefined;

  constructor(replica: Replica) {
    this.#replica = replica;
    this.row = replica.id;
  }

  get isHeld(): boolean {
    return !this.signal.aborted && this.#replica.isAlive && this.#replica.id === this.row;
  }

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  end(why: LeaseEnded['why']): void {
    this.#ended.abort(new LeaseEnded(why));
  }
}
