import { failed, failureOf, type Target, TurnError, type TurnRecord, type WatchedTurn } from '@plugboard/kernel/contracts';
import { type Batch, endOf } from '../../engine/log/batch.js';

/** The topic of the turns of a session, for those who watch it at other servers (C-250). */
export function topicOfSession(conversation: string): string {
  return `session:${conversation}`;
}

/** What another server says first of a turn, as JSON. */
export interface RemoteHead extends Omit<WatchedTurn, 'target' | 'record' | 'cancel'> {
  readonly turnId: string;
  readonly agent: string;
  /** When it ended, if it had by then, by the time of the store. */
  readonly endedAt?: number | undefined;
}

/** What it says then, as JSON. The record is left out where the batch changes little of it. */
export interface RemoteBatch {
  readonly batch: Batch;
  readonly record?: TurnRecord | undefined;
}

/** A turn of another server, and a position in what it says of it. */
export class RemoteTurn {
  readonly turn: WatchedTurn & { record: TurnRecord | undefined };
  readonly #unread: (RemoteBatch & { readonly size: number })[] = [];
  #hasEnded = false;

  /** @param cancel asks its server to end it. */
  constructor(head: RemoteHead, target: Target, cancel: () => Promise<void>) {
    this.turn = { ...head, target, record: undefined, cancel };
  }

  /** Bytes that were not taken. */
  get unread(): number {
    return this.#unread.reduce((sum, { size }) => sum + size, 0);
  }

  /** Takes the next batch; undefined if none is there yet. */
  take(): Batch | undefined {
    const next = this.#unread.shift();
    if (next?.record) this.turn.record = next.record;
    return next?.batch;
  }

  /** Its server has sent something. */
  receive(text: string): void {
    this.#add(JSON.parse(text) as RemoteBatch, text.length);
  }

  /** Its server sends nothing more. If the turn had not ended, its server died. */
  close(): void {
    if (!this.#hasEnded) this.#add({ batch: [failed(failureOf(serverDied(), false))] }, 0);
  }

  leave(): void {
    this.#unread.length = 0;
  }

  #add(said: RemoteBatch, size: number): void {
    this.#unread.push({ ...said, size });
    this.#hasEnded ||= endOf(said.batch) !== undefined;
  }
}

/** Why a turn of another server ends without its own end. */
export function serverDied(cause?: unknown): TurnError {
  return new TurnError('stopped', 'The server of the turn stopped before the agent finished.', { cause });
}
