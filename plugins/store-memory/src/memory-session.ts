import {
  conversationId,
  type Message,
  type Metadata,
  type SessionId,
  type SessionInfo,
  type StoredSession,
  type StoredTurn,
  type Summary,
  type TurnPage,
} from '@plugboard/kernel';
import type { Copy } from './copy.js';

/** What a session begins with. */
export interface Beginning {
  /** The version at which it begins: its first turn is the one after it. */
  readonly base: number;
  readonly createdAt: number;
  /** Its place among those that were created in the same millisecond. */
  readonly number: number;
}

/** What is kept of a session besides its messages. */
interface Extras {
  readonly metadata?: Copy<Metadata>;
  readonly summary?: Copy<Summary> | undefined;
}

/** One conversation. Messages and metadata are frozen copies, so that handing them out needs no further copy. */
export class MemorySession {
  readonly id: SessionId;
  readonly conversation: string;
  readonly beginning: Beginning;
  #updatedAt: number;
  #user: string | undefined;
  #metadata: Copy<Metadata> = { value: Object.freeze({}), bytes: 0 };
  #summary: Copy<Summary> | undefined;
  readonly #turns: Copy<readonly Message[]>[] = [];
  #messageBytes = 0;

  constructor({ project, agent, key }: SessionId, beginning: Beginning) {
    this.id = Object.freeze({ project, agent, key });
    this.conversation = conversationId(this.id);
    this.beginning = beginning;
    this.#updatedAt = beginning.createdAt;
  }

  get version(): number {
    return this.beginning.base + this.#turns.length;
  }

  get turnCount(): number {
    return this.#turns.length;
  }

  /** Of all that is kept of it, as JSON. */
  get bytes(): number {
    return this.bytesWith({});
  }

  /** The same with another metadata or another summary. */
  bytesWith({ metadata = this.#metadata, summary = this.#summary }: Extras): number {
    return this.#messageBytes + metadata.bytes + (summary?.bytes ?? 0);
  }

  get info(): SessionInfo {
    return {
      id: this.id,
      conversation: this.conversation,
      createdAt: this.beginning.createdAt,
      updatedAt: this.#updatedAt,
      turns: this.turnCount,
      ...(this.#user !== undefined && { user: this.#user }),
      metadata: this.#metadata.value,
    };
  }

  /** @param now of the wall clock. */
  add(turn: Copy<readonly Message[]>, now: number, user?: string): void {
    this.#turns.push(turn);
    this.#messageBytes += turn.bytes;
    this.#updatedAt = now;
    this.#user = user ?? this.#user;
  }

  setMetadata(metadata: Copy<Metadata>, now: number): void {
    this.#metadata = metadata;
    this.#updatedAt = now;
  }

  setSummary(summary: Copy<Summary>): void {
    this.#summary = summary;
  }

  load(): StoredSession {
    const messages = this.#turns.flatMap(({ value }) => value);
    return {
      version: this.version,
      messages,
      bytes: this.#messageBytes,
      ...(this.#summary && { summary: this.#summary.value }),
    };
  }

  turns({ limit, order, after }: TurnPage): readonly StoredTurn[] {
    const turns = this.#turns.map(({ value }, i) => ({ turn: i + 1, messages: value.slice() }));
    if (order === 'desc') turns.reverse();
    const isLater = ({ turn }: StoredTurn) => after === undefined || (order === 'asc' ? turn > after : turn < after);
    return turns.filter(isLater).slice(0, limit);
  }

  /** Its first turns, metadata, user, and its summary where that covers no more, as another session. */
  copy(id: SessionId, turns: number, beginning: Beginning): MemorySession {
    const copy = new MemorySession(id, beginning);
    const copied = this.#turns.slice(0, turns);
    for (const turn of copied) copy.add(turn, beginning.createdAt, this.#user);
    copy.#user = this.#user;
    copy.#metadata = this.#metadata;
    const messages = copied.reduce((sum, { value }) => sum + value.length, 0);
    if (this.#summary && this.#summary.value.messages <= messages) copy.#summary = this.#summary;
    return copy;
  }
}
