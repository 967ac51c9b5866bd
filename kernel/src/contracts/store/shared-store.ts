import { recognizeAcrossCopies } from '../../host/base/across-copies.js';
import type { Exclusive } from '../../host/plugin/exclusive.js';
import type { InterruptedTurn, SessionId } from './conversation-store.js';

/**
 * What several servers need that serve the same sessions over one store. A store for one server
 * leaves it out (`SessionStore.shared`): lines, watchers and limits are then in the process.
 *
 * 1. Each server has a lease, which its store renews. A server whose lease has ended never counts
 *    again: what it held is free. It takes a new lease, under another name, and goes on.
 * 2. A turn, or work between turns such as a deletion, calls `acquire` first. It gets the lease of
 *    its session when the turns that came earlier, on any server, are over.
 * 3. With the lease it loads, begins and commits as without one. `commit` and `begin` check the
 *    lease, and throw `LeaseEnded`. `commit`, also one that fails, or `abandon` gives it back, also
 *    without a `begin`.
 * 4. A turn that is about to send something, or to run a tool, reads `SessionLease.isHeld`, which
 *    costs nothing. Where the lease ends before the turn does, `SessionLease.signal` aborts.
 * 5. `recover` is called every 5 seconds. A turn of a dead server that began is returned once over
 *    all servers: by `recover`, or as `interrupted` of the next lease of its session. The server
 *    that gets it acquires the session under another turn id, and ends the turn with `commit` or
 *    `abandon`. If it dies before that, `recover` returns the turn to the next one.
 * 6. `SessionInfo.isRunning` says whether a turn is in line, also of a session that it will create:
 *    `info`, `find` and `list` know such sessions, with no turns and the title of the arrival.
 *
 * Waits end with the reason of their signal when it aborts. A store without connection throws, as
 * it does elsewhere.
 *
 * @experimental
 */
export interface SharedStore {
  /**
   * Puts a turn into the line of its session, and resolves before `load` when nothing earlier is
   * left. `busy`: more than `maxAhead` turns are in line. `same`: an equal turn, whose id is
   * returned, is in line. Of both, nothing stays in line.
   *
   * @throws LeaseEnded if `endTurns` or this server's lease ended it; the signal's reason, and the
   *   turn leaves the line
   */
  acquire(id: SessionId, turn: TurnArrival, signal: AbortSignal): Promise<AcquireResult>;
  /**
   * Asks the turns that are in line now to end, on whichever servers they are, or one of them.
   * Resolves when they have left the line; those of a server that does not answer when its lease
   * has ended. A turn that is being committed may still succeed. Does nothing without such turns.
   */
  endTurns(id: SessionId, why: EndReason, signal: AbortSignal, turnId?: string): Promise<void>;
  /** The session in whose line a turn of the project is. Undefined: it is in none. */
  findTurn(project: string, turnId: string): Promise<SessionId | undefined>;
  /**
   * Offers live texts, such as the log of a turn, to readers on other servers.
   *
   * @param topic a text of up to 512 bytes of UTF-8, the same for offers and readers
   * @param open called when another server begins to read the topic, and again for one that
   *   begins after the last has left. It starts from the beginning; its signal aborts when none is
   *   left.
   * @returns withdraws the offer: its readers see its end after the texts that were opened.
   */
  offer(topic: string, open: (signal: AbortSignal) => AsyncIterable<string>): () => void;
  /**
   * Reads the offers that other servers make to a topic, also later ones, until the signal
   * aborts; then it ends. The texts of each `offer` come in order, from its beginning, with a delay
   * of up to a second. An item without text says that the offer has ended, or its server has.
   */
  read(topic: string, signal: AbortSignal): AsyncIterable<{ readonly offer: string; readonly text?: string }>;
  /**
   * Adds to buckets of a minute that all servers share: each admits `perMinute` requests, and
   * drains evenly.
   *
   * @returns for each, how many requests it lacks until it is full again, fractions too: more than
   * `perMinute` where servers have admitted too many
   */
  count(uses: readonly RateUse[]): Promise<readonly number[]>;
  /** Waits until this caller alone holds a name of up to 512 bytes, over all servers. */
  hold(name: string, signal: AbortSignal): Promise<Exclusive>;
  /** The time of the store, which all servers share, in milliseconds since the epoch. */
  now(): number;
}

/** Requests to add to a bucket. @experimental */
export interface RateUse {
  /** Of the bucket: up to 512 bytes. */
  readonly name: string;
  readonly perMinute: number;
  /** To add: 0 only reads. */
  readonly requests: number;
}

/** A turn that comes to a session. @experimental */
export interface TurnArrival {
  /** Unique across processes. That of its `begin`, `commit` or `abandon`. */
  readonly turnId: string;
  /** How many turns may be in line before it: 0 to be the only one. */
  readonly maxAhead: number;
  /** Equal for requests that are equal: the second one is not put in line (C-133). */
  readonly fingerprint?: string | undefined;
  /** What `SessionInfo` shows of a session that this turn will create. */
  readonly user?: string | undefined;
  /** Empty if it has none. Absent for work between turns, which `isRunning` does not count. */
  readonly title?: string | undefined;
}

/** What came of an arrival. @experimental */
export type AcquireResult =
  | { readonly kind: 'lease'; readonly lease: SessionLease }
  | { readonly kind: 'busy' }
  | { readonly kind: 'same'; readonly turnId: string };

/** The right to be the one turn of a session. Ends with `commit` or `abandon`. @experimental */
export interface SessionLease {
  /** The version of the session, to check a cached history with. -1: it is to be read again. */
  readonly version: number;
  /** A turn of a dead server that this one follows: to handle before it. Returned once. */
  readonly interrupted?: InterruptedTurn | undefined;
  /**
   * Whether no other server can have the session yet, by the monotonic clock. Asks nothing of the
   * store.
   */
  readonly isHeld: boolean;
  /** Aborts with a `LeaseEnded` where the lease ends before its turn. */
  readonly signal: AbortSignal;
}

/** Why a turn is asked to end. @experimental */
export type EndReason = 'cancelled' | 'interrupted' | 'deleted';

/**
 * A turn no longer has its place in line, and nothing of it was stored. `expired`: its server was
 * silent for too long, and another one may have the session. Otherwise `endTurns` ended it.
 *
 * @experimental
 */
export class LeaseEnded extends Error {
  override readonly name = 'LeaseEnded';

  static {
    recognizeAcrossCopies(LeaseEnded, 'LeaseEnded');
  }

  readonly why: EndReason | 'expired';

  constructor(why: EndReason | 'expired') {
    super(
      why === 'expired'
        ? 'this server has lost its lease, and another server may have the session: nothing was stored'
        : `another request ended the turn (${why}): nothing was stored`,
    );
    this.why = why;
  }
}
