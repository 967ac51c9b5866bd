import type { Clock, Logger, Message, SessionStore } from '@plugboard/kernel';
import {
  type ApprovalChange,
  type ApprovalStore,
  conversationId,
  type DocumentStore,
  type InterruptedTurn,
  type Metadata,
  type NewSession,
  type PendingToolCalls,
  type PendingToolCallsOwner,
  SessionExists,
  type SessionId,
  type SessionInfo,
  type SessionPage,
  type StoredApproval,
  type StoredDocument,
  type StoredSession,
  type StoredTurn,
  type Summary,
  type TurnBegin,
  type TurnCommit,
  type TurnPage,
  VersionConflict,
} from '@plugboard/kernel/contracts';
import { ExpiringMap } from './expiring-map.js';
import { copyMessages, copyMetadata, copySummary } from './frozen-copy.js';
import { MemoryBudget, type MemoryLimits } from './memory-budget.js';
import { MemoryIdempotency, recordBytes } from './memory-idempotency.js';
import { approvalBytes, listedOf, type MemoryApproval, MemorySession, type Origin, recordSize } from './memory-session.js';
import { MemoryState, type StateLimits } from './memory-state.js';
import { type ProjectIndex, SessionIndex } from './project-index.js';

const HOUR = 60 * 60_000;
const DAY = 24 * HOUR;

interface MemoryStoreOptions extends MemoryLimits {
  /** Milliseconds from a session's last turn to its expiry. */
  readonly ttl: number;
  /** What plugins may keep in `ctx.state`. */
  readonly state?: StateLimits;
}

/**
 * Keeps sessions in memory. No method awaits anything between reading and writing, so concurrent
 * calls are serialized.
 */
export class MemoryStore implements SessionStore {
  readonly isVolatile = true;
  readonly pendingToolCalls: PendingToolCalls = {
    save: async (owner, keys, messages) => this.#savePendingCalls(owner, keys, messages),
    find: async (owner, keys) => {
      const entries = keys.map((key) => [key, this.#pendingCalls.get(pendingCallKey(owner, key))] as const);
      return new Map(entries.flatMap(([key, entry]) => (entry ? [[key, entry.value.bytes]] : [])));
    },
    load: async (owner, key) => this.#pendingCalls.get(pendingCallKey(owner, key))?.value.value,
  };
  readonly documents: DocumentStore = {
    put: async (id, name, text) => this.#putDocument(id, name, text),
    get: async (project, name, reserve) => this.#document(project, name, reserve),
    delete: async (project, name) => this.#deleteDocument(project, name),
  };
  readonly approvals: ApprovalStore = {
    get: async (project, ids, reserve) =>
      ids.flatMap((id) => {
        const found = this.#approval(project, id);
        if (!found) return [];
        reserve?.(Buffer.byteLength(found.stored.text));
        return found.stored;
      }),
    find: async (project, id) => {
      const found = this.#approval(project, id);
      return found && listedOf(found);
    },
    waiting: async (project, page) => this.#indexOf(project)?.waiting(page) ?? [],
    replace: async (read, change) => this.#replaceApproval(read, change),
  };
  readonly idempotency: MemoryIdempotency;
  readonly state: MemoryState;
  readonly #clock: Clock;
  /** By opaque id. */
  readonly #sessions: ExpiringMap<MemorySession>;
  readonly #index = new SessionIndex();
  /** The versions from which deleted and evicted sessions continue, by opaque id. */
  readonly #tombstones: ExpiringMap<number>;
  readonly #pendingCalls: ExpiringMap<ReturnType<typeof copyMessages>>;
  readonly #budget: MemoryBudget;
  /** Running turns by their ids: the opaque ids of their sessions, and of what these belong to. */
  readonly #running = new Map<string, { readonly conversation: string; readonly parent: string | undefined }>();
  #created = 0;

  constructor({ ttl, state, ...limits }: MemoryStoreOptions, clock: Clock, log: Logger) {
    this.#clock = clock;
    this.state = new MemoryState(clock, state);
    this.#sessions = new ExpiringMap(ttl, clock, (entry) => this.#budget.loseSession(entry, 'ttl'));
    this.#tombstones = new ExpiringMap(30 * DAY, clock);
    this.#pendingCalls = new ExpiringMap(HOUR, clock);
    this.idempotency = new MemoryIdempotency(clock, (record) => {
      this.#budget.assertFits(recordBytes(record), 'the answer to a request with an Idempotency-Key');
      this.idempotency.add(record);
      this.#budget.evict();
    });
    const contents = {
      sessions: this.#sessions,
      pendingCalls: this.#pendingCalls,
      records: this.idempotency.records,
      tombstones: this.#tombstones,
      index: this.#index,
    };
    this.#budget = new MemoryBudget(limits, contents, log);
  }

  async load(id: SessionId): Promise<StoredSession> {
    const session = this.#find(id);
    if (!session) return { version: this.#initialVersion(id), turns: 0, messages: [], bytes: 0 };
    this.#touch(session); // a turn begins
    return session.load();
  }

  async version(id: SessionId): Promise<number> {
    return this.#find(id)?.version ?? this.#initialVersion(id);
  }

  /** Keeps the session until the turn ends. */
  async begin(id: SessionId, { turnId, parent }: TurnBegin): Promise<void> {
    if (this.#running.has(turnId)) return;
    const conversation = conversationId(id);
    this.#running.set(turnId, { conversation, parent: parent && conversationId(parent) });
    this.#sessions.pin(conversation);
  }

  async abandon(_: SessionId, turnId: string): Promise<void> {
    this.#end(turnId);
    this.#budget.evict();
  }

  async recover(): Promise<readonly InterruptedTurn[]> {
    return [];
  }

  async commit(id: SessionId, turn: TurnCommit): Promise<void> {
    const { turnId, expected, messages, record, user, idempotency, state = [], approvals = [] } = turn;
    const found = this.#find(id);
    const parent = this.#running.get(turnId ?? '')?.parent;
    const session = found ?? new MemorySession(id, { ...this.#origin(id), parent });
    if (session.version !== expected) throw new VersionConflict(expected, session.version);
    const conflict = this.state.conflict(state);
    if (conflict) throw new VersionConflict(expected, conflict);
    const copy = copyMessages(messages);
    const added = approvals.reduce((sum, approval) => sum + approvalBytes(approval), copy.bytes + recordSize(record));
    this.#budget.assertFits(session.bytes + added + recordBytes(idempotency), 'the session');
    this.state.assertFits(state);
    this.state.apply(state);
    if (!found) this.#index.add(session);
    const index = this.#index.of(id.project);
    index?.touch(session, () => session.add(copy, this.#now(), user, record));
    for (const approval of approvals) this.#setApproval(session, approval);
    this.#touch(session);
    if (turnId !== undefined) this.#end(turnId);
    if (idempotency) this.idempotency.add(idempotency);
    this.#evictOthers(session);
  }

  async create(id: SessionId, { metadata, messages }: NewSession): Promise<void> {
    if (this.#find(id)) throw new SessionExists();
    const session = new MemorySession(id, this.#origin(id));
    session.setMetadata(copyMetadata(metadata));
    if (messages.length > 0) session.add(copyMessages(messages), session.origin.createdAt);
    this.#addNew(session);
  }

  async info(id: SessionId): Promise<SessionInfo | undefined> {
    return this.#find(id)?.info;
  }

  async find(project: string, conversation: string): Promise<SessionInfo | undefined> {
    const found = this.#sessions.get(conversation)?.value;
    return found?.id.project === project && found.origin.parent === undefined ? found.info : undefined;
  }

  async list(project: string, page: SessionPage): Promise<readonly SessionInfo[]> {
    const last = page.after && this.#sessions.get(page.after.conversation)?.value;
    return this.#indexOf(project)?.list(page, last?.id.project === project ? last : undefined) ?? [];
  }

  async setMetadata(id: SessionId, metadata: Metadata): Promise<void> {
    const session = this.#find(id);
    if (!session) return;
    const copy = copyMetadata(metadata);
    this.#budget.assertFits(session.bytesWith({ metadata: copy }), 'the session');
    session.setMetadata(copy);
    this.#resize(session);
  }

  async turns(id: SessionId, page: TurnPage): Promise<readonly StoredTurn[]> {
    return this.#find(id)?.turns(page) ?? [];
  }

  async putSummary(id: SessionId, version: number, summary: Summary): Promise<void> {
    const session = this.#find(id);
    if (session?.version !== version) return;
    const copy = copySummary(summary);
    this.#budget.assertFits(session.bytesWith({ summary: copy }), 'the session');
    session.setSummary(copy);
    this.#resize(session);
  }

  async fork(id: SessionId, key: string, turns: number): Promise<void> {
    const copyId = { ...id, key };
    if (this.#find(copyId)) throw new SessionExists();
    const session = this.#find(id);
    if (session) this.#addNew(session.fork(copyId, turns, this.#origin(copyId)));
  }

  #putDocument(id: SessionId, name: string, text: string): void {
    const session = this.#find(id);
    if (!session) return;
    this.#budget.assertFits(session.bytes + Buffer.byteLength(text), 'the session');
    const owners = this.#index.of(id.project)?.documents;
    const before = owners?.get(name);
    before?.deleteDocument(name);
    if (before) this.#resize(before);
    session.setDocument(name, text);
    owners?.set(name, session);
    this.#resize(session);
  }

  #setApproval(session: MemorySession, change: ApprovalChange): void {
    const sequence = session.approval(change.id)?.sequence ?? this.#created++;
    const { id, waits, caller, expiresAt, listed, text } = change;
    const stored = { id, waits, caller, expiresAt, listed, text, session: session.id };
    this.#index.of(session.id.project)?.setApproval(session, { stored, sequence });
  }

  #approval(project: string, id: string): MemoryApproval | undefined {
    return this.#indexOf(project)?.approvals.get(id)?.approval(id);
  }

  #replaceApproval(read: StoredApproval, { waits, text }: Pick<ApprovalChange, 'waits' | 'text'>): boolean {
    const session = this.#find(read.session);
    const before = session?.approval(read.id);
    if (!session || before?.stored.text !== read.text) return false;
    const changed = { ...before.stored, waits, text };
    this.#budget.assertFits(session.bytes + approvalBytes(changed) - approvalBytes(before.stored), 'the session');
    this.#setApproval(session, changed);
    this.#resize(session);
    return true;
  }

  #document(project: string, name: string, reserve?: (bytes: number) => void): StoredDocument | undefined {
    const owner = this.#indexOf(project)?.documents.get(name);
    const text = owner?.document(name);
    if (!owner || text === undefined) return undefined;
    reserve?.(Buffer.byteLength(text));
    return { id: owner.id, text };
  }

  #deleteDocument(project: string, name: string): number | undefined {
    const owners = this.#indexOf(project)?.documents;
    const owner = owners?.get(name);
    owners?.delete(name);
    owner?.deleteDocument(name);
    if (owner) this.#resize(owner);
    return owner?.documentsLike(name);
  }

  async delete(id: SessionId): Promise<boolean> {
    const session = this.#find(id);
    const children = this.#indexOf(id.project)?.childrenOf(conversationId(id)) ?? [];
    for (const one of [...(session ? [session] : []), ...children]) {
      this.#sessions.delete(one.conversation);
      this.#index.delete(one);
      this.#tombstones.set(one.conversation, one.version + 1, 0, id.project);
    }
    this.#budget.evict();
    return session !== undefined;
  }

  async health(): Promise<{ readonly ok: boolean }> {
    return { ok: true };
  }

  clear(): void {
    for (const map of [this.#sessions, this.#tombstones, this.#pendingCalls, this.idempotency.records]) map.clear();
    this.#running.clear();
    this.#index.clear();
    this.state.clear();
  }

  /** What is found in a project, without what has expired. */
  #indexOf(project: string): ProjectIndex | undefined {
    this.#sessions.expire();
    return this.#index.of(project);
  }

  #end(turnId: string): void {
    const running = this.#running.get(turnId);
    if (running === undefined) return;
    this.#running.delete(turnId);
    this.#sessions.unpin(running.conversation);
  }

  #find(id: SessionId): MemorySession | undefined {
    return this.#sessions.get(conversationId(id))?.value;
  }

  /** The version of a session that does not exist: the one its predecessor left behind, or 0. */
  #initialVersion(id: SessionId): number {
    return this.#tombstones.get(conversationId(id))?.value ?? 0;
  }

  #origin(id: SessionId): Origin {
    return { base: this.#initialVersion(id), createdAt: this.#now(), sequence: this.#created++ };
  }

  #addNew(session: MemorySession): void {
    this.#budget.assertFits(session.bytes, 'the session');
    this.#index.add(session);
    this.#touch(session);
    this.#evictOthers(session);
  }

  /** Makes a session the most recently used one. */
  #touch(session: MemorySession): void {
    this.#sessions.set(session.conversation, session, session.bytes, session.id.project);
  }

  /** Only turns count as use of a session; other changes do not. */
  #resize(session: MemorySession): void {
    this.#sessions.resize(session.conversation, session.bytes);
    this.#evictOthers(session);
  }

  /** Applies the limits without losing a session that was just written. */
  #evictOthers({ conversation }: MemorySession): void {
    this.#sessions.pin(conversation);
    this.#budget.evict();
    this.#sessions.unpin(conversation);
  }

  #savePendingCalls(owner: PendingToolCallsOwner, keys: readonly string[], messages: readonly Message[]): void {
    const copy = copyMessages(messages);
    this.#budget.assertFits(copy.bytes, 'a turn with pending tool calls');
    const share = Math.ceil(copy.bytes / keys.length); // all keys share one copy
    for (const key of keys) this.#pendingCalls.set(pendingCallKey(owner, key), copy, share, owner.project);
    this.#budget.evict();
  }

  /** Timestamps are integers, which a clock need not return. */
  #now(): number {
    return Math.floor(this.#clock.now());
  }
}

/** JSON, because a plain separator could occur in a key. */
function pendingCallKey({ project, agent }: PendingToolCallsOwner, key: string): string {
  return JSON.stringify([project, agent, key]);
}
