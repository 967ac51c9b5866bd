import { TurnError } from '@plugboard/kernel/contracts';

/** The right of a turn to its session, among all servers that serve the session. */
export interface TurnLease {
  /** The version of the session when the turn's time came. */
  readonly version: number;
  /** Whether the session is still this server's, by its monotonic clock. Asks no store. */
  readonly isHeld: boolean;
  /** Gives the session back, without a trace of the turn. Never rejects. */
  abandon(): Promise<void>;
}

/** The lease of a turn for the turns that its tools start: these cannot give it back. */
export class LentLease implements TurnLease {
  readonly #lease: TurnLease;

  constructor(lease: TurnLease) {
    this.#lease = lease;
  }

  get version(): number {
    return this.#lease.version;
  }

  get isHeld(): boolean {
    return this.#lease.isHeld;
  }

  async abandon(): Promise<void> {}
}

/** The session of a turn may be another server's: nothing more of it is sent or stored. */
export function leaseLost(cause?: unknown): TurnError {
  return new TurnError(
    'lease_lost',
    'This server lost its lease, so another server may have the session, and nothing of the turn was stored. Send the request again.',
    { cause },
  );
}
