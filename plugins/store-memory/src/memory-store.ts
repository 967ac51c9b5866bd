import {
  CLOCK,
  type Clock,
  CONFIG,
  conversationId,
  type InterruptedTurn,
  inject,
  injectable,
  LOGGER,
  type Logger,
  type Message,
  type Metadata,
  type NewSession,
  type PendingToolCalls,
  type PendingToolCallsOwner,
  parseDuration,
  parseSize,
  SessionExists,
  type SessionId,
  type SessionInfo,
  type SessionPage,
  type SessionStore,
  type StoredSession,
  type StoredTurn,
  type Summary,
  type TurnCommit,
  type TurnPage,
  VersionConflict,
} from '@plugboard/kernel';
import type { MemoryConfig } from './config.js';
import { copyOfMessages, copyOfMetadata, copyOfSummary } from './copy.js';
import { MemoryIdempotency, sizeOf } from './memory-idempotency.js';
import { type Beginning, MemorySession } from './memory-session.js';
import { pageOf } from './page.js';
import { Room } from './room.js';
import { Shelf } from './shelf.js';

const HOUR = 60 * 60_000;
const DAY = 24 * HOUR;

/**
 * Keeps sessions as long as the process lives and there is room. Every method works in one go between two ticks: two commits at the same time are
 * one after the other.
 */
@injectable()
export class MemoryStore implements SessionStore {
  readonly pendingToolCalls: PendingToolCalls = {
    save: async (owner, keys, messages) => this.#savePendingCalls(owner, keys, messages),
    load: async (owner, key) => this.#pendingCalls.get(pendingCallKey(owner, key))?.value,
  };
  readonly idempotency: MemoryIdempotency;
  readonly #clock: Clock;
  /** By opaque id. */
  readonly #sessions: Shelf<MemorySession>;
  /** By the same: the version that a deleted session had at the end. */
  readonly #tombstones: Shelf<number>;
  /** By owner and call. */
  readonly #pendingCalls: Shelf<readonly Message[]>;
  readonly #room: Room;
  #created = 0;

  constructor(@inject(CONFIG) config: MemoryConfig, @inject(CLOCK) clock: Clock, @inject(LOGGER) log: Logger) {
    this.#clock = clock;
    this.#sessions = new Shelf(parseDuration(config.ttl), clock, (item) => this.#room.logLoss(item, 'ttl'));
    this.#tombstones = new Shelf(30 * DAY, clock, () => {});
    this.#pendingCalls = new Shelf(HOUR, clock, () => {});
    this.idempotency = new MemoryIdempotency(clock, (record) => {
      this.#room.assertFits(sizeOf(record), 'the answer to a request with an Idempotency-Key');
      this.idempotency.keep(record);
      this.#room.make();
    });
    const shelves = {
      sessions: this.#sessions,
      tombstones: this.#tombstones,
      pendingCalls: this.#pendingCalls,
      answers: this.idempotency.shelf,
    };
    this.#room = new Room({ maxSessions: config.maxSessions, maxBytes: parseSize(config.maxBytes) }, shelves, log);
  }

  async load(id: SessionId): Promise<StoredSession> {
    const session = this.#find(id);
    if (!session) return { version: this.#buried(id), messages: [], bytes: 0 };
    this.#keep(session); // a turn begins: this session is not the one to evict while it runs
    return session.load();
  }

  async version(id: SessionId): Promise<number> {
    return this.#find(id)?.version ?? this.#buried(id);
  }

  /** What begins here and never ends is gone with the process: there is nothing to write down, nor to recover. */
  async begin(): Promise<void> {}

  async abandon(): Promise<void> {}

  async recover(): Promise<readonly InterruptedTurn[]> {
    return [];
  }

  async commit(id: SessionId, { expected, messages, user, idempotency }: TurnCommit): Promise<void> {
    const session = this.#find(id) ?? new MemorySession(id, this.#beginning(id));
    if (session.version !== expected) throw new VersionConflict(expected, session.version);
    const turn = copyOfMessages(messages);
    this.#room.assertFits(session.bytes + turn.bytes + sizeOf(idempotency), 'the session');
    session.add(turn, this.#now(), user);
    this.#keep(session);
    if (idempotency) this.idempotency.keep(idempotency);
    this.#room.make();
  }

  async create(id: SessionId, { metadata, messages }: NewSession): Promise<void> {
    if (this.#find(id)) throw new SessionExists();
    const session = new MemorySession(id, this.#beginning(id));
    session.setMetadata(copyOfMetadata(metadata), session.beginning.createdAt);
    if (messages.length > 0) session.add(copyOfMessages(messages), session.beginning.createdAt);
    this.#addNew(session);
  }

  async info(id: SessionId): Promise<SessionInfo | undefined> {
    return this.#find(id)?.info;
  }

  async find(project: string, conversation: string): Promise<SessionInfo | undefined> {
    const found = this.#sessions.get(conversation)?.value.info;
    return found?.id.project === project ? found : undefined;
  }

  async list(project: string, page: SessionPage): Promise<readonly SessionInfo[]> {
    return pageOf(this.#sessions.values(), project, page);
  }

  async setMetadata(id: SessionId, metadata: Metadata): Promise<void> {
    const session = this.#find(id);
    if (!session) return;
    const copy = copyOfMetadata(metadata);
    this.#room.assertFits(session.bytesWith({ metadata: copy }), 'the session');
    session.setMetadata(copy, this.#now());
    this.#resized(session);
  }

  async turns(id: SessionId, page: TurnPage): Promise<readonly StoredTurn[]> {
    return this.#find(id)?.turns(page) ?? [];
  }

  async putSummary(id: SessionId, version: number, summary: Summary): Promise<void> {
    const session = this.#find(id);
    if (session?.version !== version) return;
    const copy = copyOfSummary(summary);
    this.#room.assertFits(session.bytesWith({ summary: copy }), 'the session');
    session.setSummary(copy);
    this.#resized(session);
  }

  async fork(id: SessionId, key: string, turns: number): Promise<void> {
    const copy = { ...id, key };
    if (this.#find(copy)) throw new SessionExists();
    const session = this.#find(id);
    if (session) this.#addNew(session.copy(copy, turns, this.#beginning(copy)));
  }

  async delete(id: SessionId): Promise<boolean> {
    const session = this.#find(id);
    if (!session) return false;
    this.#sessions.take(session.conversation);
    this.#tombstones.put(session.conversation, session.version + 1, 0);
    this.#room.make();
    return true;
  }

  async health(): Promise<{ readonly ok: boolean }> {
    return { ok: true };
  }

  /** Forgets everything. */
  stop(): void {
    for (const shelf of [this.#sessions, this.#tombstones, this.#pendingCalls, this.idempotency.shelf]) shelf.clear();
  }

  #find(id: SessionId): MemorySession | undefined {
    return this.#sessions.get(conversationId(id))?.value;
  }

  /** The version at which a session begins that is not there. */
  #buried(id: SessionId): number {
    return this.#tombstones.get(conversationId(id))?.value ?? 0;
  }

  #beginning(id: SessionId): Beginning {
    return { base: this.#buried(id), createdAt: this.#now(), number: this.#created++ };
  }

  #addNew(session: MemorySession): void {
    this.#room.assertFits(session.bytes, 'the session');
    this.#keep(session);
    this.#room.make();
  }

  /** Puts a session in its place, as the one that was used last. */
  #keep(session: MemorySession): void {
    this.#sessions.put(session.conversation, session, session.bytes);
  }

  /** What changes besides turns is no use of a session. */
  #resized(session: MemorySession): void {
    this.#sessions.resize(session.conversation, session.bytes);
    this.#room.make();
  }

  #savePendingCalls(owner: PendingToolCallsOwner, keys: readonly string[], messages: readonly Message[]): void {
    const copy = copyOfMessages(messages);
    this.#room.assertFits(copy.bytes, 'a turn with pending tool calls');
    const share = Math.ceil(copy.bytes / keys.length); // all keys share one copy
    for (const key of keys) this.#pendingCalls.put(pendingCallKey(owner, key), copy.value, share);
    this.#room.make();
  }

  /** Stamps are whole numbers, which a clock need not give. */
  #now(): number {
    return Math.floor(this.#clock.now());
  }
}

/** One text for three values that no three others have: a separator alone could stand in a key too. */
function pendingCallKey({ project, agent }: PendingToolCallsOwner, key: string): string {
  return JSON.stringify([project, agent, key]);
}
