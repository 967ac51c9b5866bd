import type { Message } from '@plugboard/kernel';
import { failed, failureOf, type Target, TurnError, type TurnRecord, type WatchedTurn } from '@plugboard/kernel/contracts';
import { type Batch, endOf } from '../../engine/log/batch.js';

/** The topic of the turns of a session, for those who watch it at other servers (C-250). */
export function topicOfSession(conversation: string): string {
  return `session:${conversation}`;
}

/** What another server says first of a turn, as JSON. */
export interface RemoteHead {
  readonly id: string;
  readonly turnId: string;
  readonly agent: string;
  readonly createdAt: number;
  readonly messages: readonly Message[];
  readonly size: number;
  readonly approvals: WatchedTurn['approvals'];
  readonly isWaiting: boolean;
  readonly ahead: number;
}

/** What it says then, as JSON. The record is left out where the batch changes little of it. */
export interface RemoteBatch {
  readonly batch: Batch;
  readonly record?: TurnRecord | undefined;
}

/** A turn of another server, and a position in what it says of it. */
export class RemoteTurn implements WatchedTurn {
  readonly id: string;
  readonly target: Target;
  readonly createdAt: number;
  readonly messages: readonly Message[];
  readonly size: number;
  readonly approvals: WatchedTurn['approvals'];
  readonly isWaiting: boolean;
  readonly ahead: number;
  record: TurnRecord | undefined;
  readonly #end: () => Promise<void>;
  readonly #unread: { readonly batch: Batch; readonly record: TurnRecord | undefined; readonly size: number }[] = [];
  #hasEnded = false;

  /** @param end asks its server to end it. */
  constructor(
    { id, createdAt, messages, size, approvals, isWaiting, ahead }: RemoteHead,
    target: Target,
    end: () => Promise<void>,
  ) {
    this.id = id;
    this.target = target;
    this.createdAt = createdAt;
    this.messages = messages;
    this.size = size;
    this.approvals = approvals;
    this.isWaiting = isWaiting;
    this.ahead = ahead;
    this.#end = end;
  }

  get turn(): WatchedTurn {
    return this;
  }

  /** Bytes that were not taken. */
  get unread(): number {
    return this.#unread.reduce((sum, { size }) => sum + size, 0);
  }

  /** Takes the next batch; undefined if none is there yet. */
  take(): Batch | undefined {
    const next = this.#unread.shift();
    if (next?.record) this.record = next.record;
    return next?.batch;
  }

  /** Its server has sent something. */
  receive(text: string): void {
    const { batch, record } = JSON.parse(text) as RemoteBatch;
    this.#add({ batch, record, size: text.length });
  }

  /** Its server sends nothing more. @returns whether the turn had not ended: its server died. */
  close(): boolean {
    const isCut = !this.#hasEnded;
    const died = new TurnError('stopped', 'The server of the turn stopped before the agent finished.');
    if (isCut) this.#add({ batch: [failed(failureOf(died, false))], record: undefined, size: 0 });
    return isCut;
  }

  leave(): void {
    this.#unread.length = 0;
  }

  cancel(): Promise<void> {
    return this.#end();
  }

  #add(one: { readonly batch: Batch; readonly record: TurnRecord | undefined; readonly size: number }): void {
    this.#unread.push(one);
    this.#hasEnded ||= endOf(one.batch) !== undefined;
  }
}
