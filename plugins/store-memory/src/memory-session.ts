import type { Message } from '@plugboard/kernel';
import {
  conversationId,
  type Metadata,
  type SessionId,
  type SessionInfo,
  type StoredApproval,
  type StoredSession,
  type StoredTurn,
  type Summary,
  sessionTitle,
  type TurnPage,
} from '@plugboard/kernel/contracts';
import type { FrozenCopy } from './frozen-copy.js';

/** Where a session starts. */
export interface Origin {
  /**
   * The version before its first turn: 0, or more if a session with the same id was deleted before.
   */
  readonly base: number;
  readonly createdAt: number;
  /** Orders sessions that were created in the same millisecond. */
  readonly sequence: number;
  /** The opaque id of the session that it belongs to. */
  readonly parent?: string | undefined;
}

/** What a session holds besides its messages. */
interface Extras {
  readonly metadata?: FrozenCopy<Metadata>;
  readonly summary?: FrozenCopy<Summary> | undefined;
}

/** A turn in memory. */
interface MemoryTurn extends FrozenCopy<readonly Message[]> {
  readonly record: string | undefined;
}

/** A request for approval in memory. */
export interface MemoryApproval {
  readonly stored: StoredApproval;
  /** Orders approvals of all sessions. */
  readonly sequence: number;
}

/** Size of an approval. */
export function approvalBytes(approval: Pick<StoredApproval, 'listed' | 'text'> | undefined): number {
  return approval ? Buffer.byteLength(approval.listed) + Buffer.byteLength(approval.text) : 0;
}

/** An approval without its text. */
export function listedOf({ stored: { text: _, ...listed } }: MemoryApproval): Omit<StoredApproval, 'text'> {
  return listed;
}

/** Size of the record of a turn. */
export function recordSize(record: string | undefined): number {
  return record === undefined ? 0 : Buffer.byteLength(record);
}

/** One session. Its messages and metadata are frozen, so they are returned without another copy. */
export class MemorySession {
  readonly id: SessionId;
  readonly conversation: string;
  readonly origin: Origin;
  #updatedAt: number;
  #user: string | undefined;
  #title: string | undefined;
  #metadata: FrozenCopy<Metadata> = { value: Object.freeze({}), bytes: 0 };
  #summary: FrozenCopy<Summary> | undefined;
  readonly #turns: MemoryTurn[] = [];
  #messageBytes = 0;
  #recordBytes = 0;
  /** Texts by their names. */
  readonly #documents = new Map<string, string>();
  #documentBytes = 0;
  /** By their ids. */
  readonly #approvals = new Map<string, MemoryApproval>();
  #approvalBytes = 0;

  constructor({ project, agent, key }: SessionId, origin: Origin) {
    this.id = Object.freeze({ project, agent, key });
    this.conversation = conversationId(this.id);
    this.origin = origin;
    this.#updatedAt = origin.createdAt;
  }

  get version(): number {
    return this.origin.base + this.#turns.length;
  }

  /** Time of the last turn, or of the creation. */
  get updatedAt(): number {
    return this.#updatedAt;
  }

  get turnCount(): number {
    return this.#turns.length;
  }

  /** Size of everything it holds, as JSON. */
  get bytes(): number {
    return this.bytesWith({});
  }

  /** Its size if it had other metadata or another summary. */
  bytesWith({ metadata = this.#metadata, summary = this.#summary }: Extras): number {
    const texts = this.#recordBytes + this.#documentBytes + this.#approvalBytes;
    return this.#messageBytes + texts + metadata.bytes + (summary?.bytes ?? 0);
  }

  get info(): SessionInfo {
    return {
      id: this.id,
      conversation: this.conversation,
      createdAt: this.origin.createdAt,
      updatedAt: this.#updatedAt,
      turns: this.turnCount,
      bytes: this.bytes,
      ...(this.#user !== undefined && { user: this.#user }),
      ...(this.#title !== undefined && { title: this.#title }),
      metadata: this.#metadata.value,
    };
  }

  /** Appends a turn. @param now milliseconds since the epoch. */
  add({ value, bytes }: FrozenCopy<readonly Message[]>, now: number, user?: string, record?: string): void {
    this.#turns.push({ value, bytes, record });
    this.#messageBytes += bytes;
    this.#recordBytes += recordSize(record);
    this.#updatedAt = now;
    this.#user = user ?? this.#user;
    this.#title ??= sessionTitle(value);
  }

  setMetadata(metadata: FrozenCopy<Metadata>): void {
    this.#metadata = metadata;
  }

  setSummary(summary: FrozenCopy<Summary>): void {
    this.#summary = summary;
  }

  /** The number of documents whose names begin like this one, up to the first `_`. */
  documentsLike(name: string): number {
    const kind = name.slice(0, name.indexOf('_') + 1);
    return this.#documents.keys().reduce((sum, one) => (one.slice(0, one.indexOf('_') + 1) === kind ? sum + 1 : sum), 0);
  }

  get documentNames(): Iterable<string> {
    return this.#documents.keys();
  }

  document(name: string): string | undefined {
    return this.#documents.get(name);
  }

  setDocument(name: string, text: string): void {
    this.deleteDocument(name);
    this.#documents.set(name, text);
    this.#documentBytes += Buffer.byteLength(text);
  }

  deleteDocument(name: string): void {
    const text = this.#documents.get(name);
    if (text === undefined) return;
    this.#documents.delete(name);
    this.#documentBytes -= Buffer.byteLength(text);
  }

  get approvals(): Iterable<MemoryApproval> {
    return this.#approvals.values();
  }

  approval(id: string): MemoryApproval | undefined {
    return this.#approvals.get(id);
  }

  setApproval(approval: MemoryApproval): void {
    const { stored } = approval;
    this.#approvalBytes += approvalBytes(stored) - approvalBytes(this.#approvals.get(stored.id)?.stored);
    this.#approvals.set(stored.id, approval);
  }

  load(): StoredSession {
    const messages = this.#turns.flatMap(({ value }) => value);
    return {
      version: this.version,
      turns: this.#turns.length,
      messages,
      bytes: this.#messageBytes,
      ...(this.#summary && { summary: this.#summary.value }),
    };
  }

  turns({ limit, order, after, maxBytes = Number.POSITIVE_INFINITY, reserve }: TurnPage): readonly StoredTurn[] {
    const step = order === 'asc' ? 1 : -1;
    const count = this.#turns.length;
    const first = order === 'asc' ? (after ?? 0) + 1 : Math.min((after ?? count + 1) - 1, count);
    const page: StoredTurn[] = [];
    for (let turn = first, bytes = 0; page.length < limit && bytes < maxBytes; turn += step) {
      const stored = this.#turns[turn - 1];
      if (!stored) break;
      const { value, record } = stored;
      reserve?.(stored.bytes + recordSize(record));
      page.push({ turn, messages: value.slice(), ...(record !== undefined && { record }) });
      bytes += stored.bytes;
    }
    return page;
  }

  /**
   * Copies its first turns, metadata, user and title to a new session, and its summary if the
   * copied turns include all it covers.
   */
  fork(id: SessionId, turns: number, origin: Origin): MemorySession {
    const copy = new MemorySession(id, origin);
    const copied = this.#turns.slice(0, turns);
    for (const turn of copied) copy.add(turn, origin.createdAt, this.#user, turn.record);
    copy.#user = this.#user;
    copy.#title = this.#title;
    copy.#metadata = this.#metadata;
    const messages = copied.reduce((sum, { value }) => sum + value.length, 0);
    if (this.#summary && this.#summary.value.messages <= messages) copy.#summary = this.#summary;
    return copy;
  }
}
