import type { InterruptedTurn, SessionLease } from '@plugboard/kernel/contracts';
import type { TurnLease } from '../../engine/turn/turn-lease.js';

/** The lease of a session, which is given back once. */
export class HeldLease implements TurnLease {
  readonly version: number;
  /** A turn of a dead server, which is handled before this one begins. */
  readonly interrupted: InterruptedTurn | undefined;
  /** Aborts when the lease ends before its turn, with a `LeaseEnded`. */
  readonly signal: AbortSignal;
  readonly #lease: SessionLease;
  readonly #giveBack: () => Promise<void>;
  /** Set when it was given back: whether it was held then. */
  #wasHeld: boolean | undefined;
  #given: Promise<void> = Promise.resolve();

  constructor(lease: SessionLease, giveBack: () => Promise<void>) {
    this.version = lease.version;
    this.interrupted = lease.interrupted;
    this.signal = lease.signal;
    this.#lease = lease;
    this.#giveBack = giveBack;
  }

  get isHeld(): boolean {
    return this.#wasHeld ?? this.#lease.isHeld;
  }

  /** A lease that is lost is not given back: its turn is one of a dead server. */
  abandon(): Promise<void> {
    if (this.#wasHeld === undefined) {
      this.#wasHeld = this.#lease.isHeld;
      // If it fails, another server finds the turn when this one has stopped.
      if (this.#wasHeld) this.#given = this.#giveBack().catch(() => {});
    }
    return this.#given;
  }
}
