import { Account, type TurnEvents, type TurnRecord } from '@plugboard/kernel/contracts';
import { type Batch, contentSize, endOf } from '../log/batch.js';
import { LogCursor } from '../log/log-cursor.js';
import type { TurnLog } from '../log/turn-log.js';

type Read = IteratorResult<Batch, undefined>;

const OVER: Read = { value: undefined, done: true };
const NONE: readonly (() => void)[] = [];

/** The turn that is read. */
export interface ReadTurn {
  readonly log: TurnLog;
  readonly account: Account;
  /** What has happened in the turn so far. */
  readonly record: TurnRecord | undefined;
  /** Ends the turn for all its readers. Resolves when it has ended. */
  cancel(): Promise<void>;
  /** A reader stopped before the end, or is read again: the log has fewer readers, or more. */
  onReaders(): void;
  /** What the reader is told whose account has no memory for the answer. */
  shortage(account: Account): Batch;
}

/**
 * One reader of a turn, at its own position in the log of the turn. A reader that joined the turn
 * of another request reserves in its own account what it reads, because it makes an answer of it:
 * what it shares with the others is the log alone (S-66).
 */
export class TurnReader extends LogCursor implements TurnEvents, AsyncIterableIterator<Batch, undefined> {
  readonly #turn: ReadTurn;
  /** Of a reader that joined. */
  readonly #account: Account | undefined;
  /** Leaves that account, and the one of the turn, which holds the log. */
  readonly #leaveAccounts: readonly (() => void)[];
  /** Resolves the read of a waiting reader. */
  #pending: ((result: Read) => void) | undefined;
  /** The last batch for this reader alone. */
  #last: Batch | undefined;
  #isGone = false;
  /** Whether it began with the turn so far. */
  readonly #isLate: boolean;

  /** @param joined the account of a reader that joins, and the turn so far if it begins with it. */
  constructor(turn: ReadTurn, joined?: { readonly account: Account; readonly soFar: Batch | undefined }) {
    super(turn.log, joined?.soFar);
    this.#turn = turn;
    this.#isLate = joined?.soFar !== undefined;
    this.#account = joined?.account;
    this.#leaveAccounts = joined ? [joined.account.hold(), turn.account.hold()] : NONE;
  }

  get record(): TurnRecord | undefined {
    return this.#turn.record;
  }

  cancel(): Promise<void> {
    return this.#turn.cancel();
  }

  setRead(isRead: boolean): void {
    if (this.#isGone) return;
    this.#turn.log.setReader(this, isRead);
    this.#turn.onReaders();
  }

  next(): Promise<Read> {
    const batch = this.#read();
    if (batch) return Promise.resolve({ value: batch, done: false });
    if (this.#isGone) return Promise.resolve(OVER);
    return new Promise((resolve) => {
      this.#pending = resolve;
    });
  }

  /** The reader stops: nothing is kept for it any more. */
  return(): Promise<Read> {
    const isEarly = !this.#isGone;
    this.#last = undefined;
    this.#go();
    this.wake();
    if (isEarly) this.#turn.onReaders();
    return Promise.resolve(OVER);
  }

  /** Ends the events of this reader with a batch. The turn goes on without it. */
  endWith(batch: Batch): void {
    if (this.#isGone) return;
    this.#go();
    this.#last = batch;
    this.wake();
  }

  wake(): void {
    const give = this.#pending;
    if (!give) return;
    const batch = this.#read();
    if (!batch && !this.#isGone) return;
    this.#pending = undefined;
    give(batch ? { value: batch, done: false } : OVER);
  }

  /** @see TurnLog.write */
  hand(batch: Batch): boolean {
    const give = this.#pending;
    if (!give || this.#account) return false;
    this.#pending = undefined;
    this.skip();
    if (endOf(batch)) this.#go();
    give({ value: batch, done: false });
    return true;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next batch, if it is there and there is memory for what becomes of it. */
  #read(): Batch | undefined {
    if (this.#isGone) {
      const last = this.#last;
      this.#last = undefined;
      return last;
    }
    const taken = this.take();
    // The call of which it has not seen the beginning comes whole.
    const batch = this.#isLate ? taken?.filter(({ type }) => type !== 'tool-call-delta') : taken;
    if (!batch) return undefined;
    const isLast = endOf(batch) !== undefined;
    const fits = !this.#account || this.#account.reserve(Account.costOf(contentSize(batch)));
    if (fits && !isLast) return batch;
    this.#go();
    if (fits) return batch;
    if (!isLast) this.#turn.onReaders();
    return this.#turn.shortage(this.#account);
  }

  #go(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.leave();
    for (const leave of this.#leaveAccounts) leave();
  }
}
