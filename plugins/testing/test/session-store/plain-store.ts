import type { Message, SessionStore, StateStore } from '@plugboard/kernel';
import {
  type ApprovalChange,
  type ApprovalPage,
  type ApprovalStore,
  conversationId,
  type DocumentStore,
  type IdempotencyKey,
  type IdempotencyRecord,
  type IdempotencyStore,
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
  sessionTitle,
  type TurnBegin,
  type TurnCommit,
  type TurnPage,
  VersionConflict,
} from '@plugboard/kernel/contracts';
import { MemoryState } from '@plugboard/store-memory';
import { ManualClock } from '../../src/index.js';
import { sessionStoreContract } from '../../src/session-store/session-store-contract.js';
import type { OpenedStore } from '../../src/session-store/support/suite.js';
import { type Case, casesOf, failing, verdict } from '../failing.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

export interface PlainSession {
  readonly id: SessionId;
  base: number;
  readonly createdAt: number;
  updatedAt: number;
  user: string | undefined;
  title: string | undefined;
  metadata: Metadata;
  turns: (readonly Message[])[];
  /** By the numbers of the turns. */
  records: Map<number, string>;
  summary: Summary | undefined;
  /** The key of the session that it belongs to. */
  readonly parent: string | undefined;
}

/** Where a session is in the order of all. */
interface Place {
  readonly info: Pick<SessionInfo, 'updatedAt'>;
  readonly place: number;
}

/** What outlives a store: the next one is opened over it. */
export class StoredData {
  /** In the order in which they were made. */
  readonly sessions = new Map<string, PlainSession>();
  readonly tombstones = new Map<string, { version: number; until: number }>();
  readonly calls = new Map<string, { messages: readonly Message[]; until: number }>();
  readonly begun = new Map<string, InterruptedTurn>();
  readonly documents = new Map<string, StoredDocument>();
  readonly approvals = new Map<string, StoredApproval>();
  readonly answers = new Map<string, { record: IdempotencyRecord; until: number }>();
  readonly state: MemoryState;

  constructor(clock: ManualClock) {
    this.state = new MemoryState(clock);
  }
}

/** The least that keeps the contract. What is wrong with a store in a test is what it overrides. */
export class PlainStore implements SessionStore {
  readonly sessions: StoredData['sessions'];
  readonly calls: StoredData['calls'];
  readonly begun: StoredData['begun'];
  /** What had begun before this store was opened. */
  readonly left: StoredData['begun'];

  constructor(
    readonly clock = new ManualClock(),
    readonly kept = new StoredData(clock),
  ) {
    this.sessions = kept.sessions;
    this.calls = kept.calls;
    this.begun = kept.begun;
    this.left = new Map(kept.begun);
  }

  async load(id: SessionId): Promise<StoredSession> {
    return structuredClone(this.loaded(id));
  }

  /** What is loaded, as the store itself holds it. */
  loaded(id: SessionId): StoredSession {
    const session = this.sessions.get(this.keyOf(id));
    const messages = session?.turns.flat() ?? [];
    const bytes = messages.reduce((sum, message) => sum + Buffer.byteLength(JSON.stringify(message)), 0);
    return { version: this.versionOf(id), turns: session?.turns.length ?? 0, messages, bytes, summary: session?.summary };
  }

  async version(id: SessionId): Promise<number> {
    return this.versionOf(id);
  }

  versionOf(id: SessionId): number {
    const session = this.sessions.get(this.keyOf(id));
    return session ? session.base + session.turns.length : this.buried(id);
  }

  buried(id: SessionId): number {
    const tombstone = this.kept.tombstones.get(this.keyOf(id));
    return tombstone && tombstone.until > this.clock.monotonic() ? tombstone.version : 0;
  }

  async begin(id: SessionId, { turnId, input, parent }: TurnBegin): Promise<void> {
    this.begun.set(turnId, structuredClone({ id, turnId, input }));
    if (parent) this.parents.set(turnId, this.keyOf(parent));
  }

  /** The keys of sessions that those of begun turns will belong to, by turn id. */
  readonly parents = new Map<string, string>();

  /** The fingerprints of the requests that run, by key. */
  readonly claims = new Map<string, string>();
  readonly idempotency: IdempotencyStore = {
    claim: async (...request) => this.claim(...request),
    put: async (record) => this.putAnswer(record),
    release: async (key) => this.release(key),
  };

  claim(...[key, fingerprint, reserve]: Parameters<IdempotencyStore['claim']>): Awaited<ReturnType<IdempotencyStore['claim']>> {
    const name = this.answerKeyOf(key);
    const running = this.claims.get(name);
    if (running !== undefined) return { key, fingerprint: running, result: 'running' };
    const found = this.kept.answers.get(name);
    if (found) reserve?.(Buffer.byteLength(JSON.stringify(found.record)));
    if (found && found.until > this.clock.monotonic()) return structuredClone(found.record);
    this.claims.set(name, fingerprint);
    return undefined;
  }

  release(key: IdempotencyKey): void {
    this.claims.delete(this.answerKeyOf(key));
  }

  get state(): StateStore {
    return this.kept.state;
  }

  putAnswer(record: IdempotencyRecord): void {
    if (record.result !== 'began') this.claims.delete(this.answerKeyOf(record.key));
    const until = this.clock.monotonic() + DAY;
    this.kept.answers.set(this.answerKeyOf(record.key), { record: structuredClone(record), until });
  }

  answerKeyOf({ project, route, key }: IdempotencyKey): string {
    return JSON.stringify([project, route, key]);
  }

  async commit(
    id: SessionId,
    { turnId, expected, messages, record, user, idempotency, state = [], approvals }: TurnCommit,
  ): Promise<void> {
    const version = this.versionOf(id);
    if (version !== expected) throw new VersionConflict(expected, version);
    const copies = structuredClone({ messages, idempotency, approvals }); // before anything changes
    const conflict = this.kept.state.conflict(state);
    if (conflict) throw new VersionConflict(expected, conflict);
    this.kept.state.assertFits(state);
    this.kept.state.apply(state);
    const session = this.sessions.get(this.keyOf(id)) ?? this.add(id, { parent: this.parents.get(turnId ?? '') });
    const number = session.turns.push(copies.messages);
    if (record !== undefined) session.records.set(number, record);
    session.user = user ?? session.user;
    session.title ??= sessionTitle(copies.messages);
    session.updatedAt = this.clock.now();
    if (turnId !== undefined) this.begun.delete(turnId);
    if (copies.idempotency) this.putAnswer(copies.idempotency);
    for (const approval of copies.approvals ?? []) this.putApproval(id, approval);
  }

  add(id: SessionId, more: Partial<PlainSession>): PlainSession {
    const now = this.clock.now();
    const empty = {
      user: undefined,
      title: undefined,
      metadata: {},
      turns: [],
      records: new Map(),
      summary: undefined,
      parent: undefined,
    };
    const session = { id: { ...id }, base: this.buried(id), createdAt: now, updatedAt: now, ...empty, ...structuredClone(more) };
    this.sessions.set(this.keyOf(id), session);
    return session;
  }

  async abandon(_: SessionId, turnId: string): Promise<void> {
    this.begun.delete(turnId);
  }

  async recover(): Promise<readonly InterruptedTurn[]> {
    const turns = [...this.left.values()];
    for (const { turnId } of turns) this.begun.delete(turnId);
    this.left.clear();
    return turns;
  }

  readonly approvals: ApprovalStore = {
    get: async (project, ids, reserve) =>
      ids.flatMap((id) => {
        const found = this.kept.approvals.get(this.nameOf(project, id));
        if (found) reserve?.(Buffer.byteLength(found.text));
        return structuredClone(found) ?? [];
      }),
    find: async (project, id) => {
      const found = this.kept.approvals.get(this.nameOf(project, id));
      return found && this.listed(found);
    },
    waiting: (project, page) => this.waitingApprovals(project, page),
    replace: (read, change) => this.replaceApproval(read, change),
  };

  putApproval(id: SessionId, approval: ApprovalChange): void {
    this.kept.approvals.set(this.nameOf(id.project, approval.id), { ...approval, session: { ...id } });
  }

  listed({ text: _, ...listed }: StoredApproval): Omit<StoredApproval, 'text'> {
    return structuredClone(listed);
  }

  async waitingApprovals(
    project: string,
    { limit, order, after, agents, caller, expiresAfter = 0, reserve }: ApprovalPage,
  ): Promise<readonly Omit<StoredApproval, 'text'>[]> {
    const all = [...this.kept.approvals.values()].filter(({ session }) => session.project === project);
    if (order === 'desc') all.reverse();
    const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
    if (after !== undefined && start === 0) return [];
    const waiting = all
      .slice(start)
      .filter(({ waits, session }) => waits && (agents?.includes(session.agent) ?? true))
      .filter((one) => one.expiresAt > expiresAfter && (caller === undefined || one.caller === caller));
    const page = waiting.slice(0, limit);
    for (const { listed } of page) reserve?.(Buffer.byteLength(listed));
    return page.map((one) => this.listed(one));
  }

  async replaceApproval(read: StoredApproval, change: Pick<ApprovalChange, 'waits' | 'text'>): Promise<boolean> {
    const found = this.kept.approvals.get(this.nameOf(read.session.project, read.id));
    if (found?.text !== read.text) return false;
    this.putApproval(read.session, { ...found, ...change });
    return true;
  }

  readonly documents: DocumentStore = {
    put: (id, name, text) => this.putDocument(id, name, text),
    get: async (project, name, reserve) => {
      const found = await this.document(project, name);
      if (found) reserve?.(Buffer.byteLength(found.text));
      return found;
    },
    delete: (project, name) => this.deleteDocument(project, name),
  };

  readonly pendingToolCalls: PendingToolCalls = {
    save: (owner, keys, messages) => this.saveCalls(owner, keys, messages),
    find: (owner, keys) => this.findCalls(owner, keys),
    load: (owner, key) => this.loadCalls(owner, key),
  };

  async saveCalls(owner: PendingToolCallsOwner, callIds: readonly string[], messages: readonly Message[]): Promise<void> {
    const saved = { messages: structuredClone(messages), until: this.clock.monotonic() + HOUR };
    for (const callId of callIds) this.calls.set(this.keyOf({ ...owner, key: callId }), saved);
  }

  async findCalls(owner: PendingToolCallsOwner, callIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (const callId of callIds) {
      const messages = await this.loadCalls(owner, callId);
      if (messages) found.set(callId, JSON.stringify(messages).length);
    }
    return found;
  }

  async loadCalls(owner: PendingToolCallsOwner, callId: string): Promise<readonly Message[] | undefined> {
    const found = this.calls.get(this.keyOf({ ...owner, key: callId }));
    return found && found.until > this.clock.monotonic() ? structuredClone(found.messages) : undefined;
  }

  async create(id: SessionId, { metadata, messages }: NewSession): Promise<void> {
    if (this.sessions.has(this.keyOf(id))) throw new SessionExists();
    this.add(id, { metadata, title: sessionTitle(messages), turns: messages.length > 0 ? [messages] : [] });
  }

  async info(id: SessionId): Promise<SessionInfo | undefined> {
    const session = this.known().find((one) => this.keyOf(one.id) === this.keyOf(id));
    return session && this.infoOf(session);
  }

  known(): readonly PlainSession[] {
    return [...this.sessions.values()];
  }

  infoOf({ id, createdAt, updatedAt, user, title, metadata, turns }: PlainSession): SessionInfo {
    const conversation = conversationId(id);
    const bytes = Buffer.byteLength(JSON.stringify(turns));
    return structuredClone({ id, conversation, createdAt, updatedAt, turns: turns.length, bytes, user, title, metadata });
  }

  async find(project: string, conversation: string): Promise<SessionInfo | undefined> {
    const found = await this.list(project, { limit: Number.POSITIVE_INFINITY, order: 'asc' });
    return found.find((info) => info.conversation === conversation);
  }

  async list(project: string, { limit, order, after, user, agents }: SessionPage): Promise<readonly SessionInfo[]> {
    const all = this.known()
      .filter(({ parent }) => parent === undefined)
      .map((session, place) => ({ info: this.infoOf(session), place }));
    const compare = (a: Place, b: Place) =>
      (order === 'asc' ? 1 : -1) * (a.info.updatedAt - b.info.updatedAt || a.place - b.place);
    const known = all.find(({ info }) => info.id.project === project && info.conversation === after?.conversation);
    const last = after && { info: after, place: known?.place ?? -1 };
    return all
      .filter(({ info }) => info.id.project === project && (agents?.includes(info.id.agent) ?? true))
      .filter(({ info }) => user === undefined || info.user === user)
      .filter((one) => !last || compare(one, last) > 0)
      .sort(compare)
      .slice(0, limit)
      .map(({ info }) => info);
  }

  async setMetadata(id: SessionId, metadata: Metadata): Promise<void> {
    const session = this.sessions.get(this.keyOf(id));
    if (session) Object.assign(session, { metadata: structuredClone(metadata) });
  }

  async turns(
    id: SessionId,
    { limit, order, after, maxBytes = Number.POSITIVE_INFINITY, reserve }: TurnPage,
  ): Promise<readonly StoredTurn[]> {
    const session = this.sessions.get(this.keyOf(id));
    const turns: StoredTurn[] = (session?.turns ?? []).map((messages, i) => {
      const record = session?.records.get(i + 1);
      return { turn: i + 1, messages, ...(record !== undefined && { record }) };
    });
    if (order === 'desc') turns.reverse();
    const later = turns.filter(({ turn }) => after === undefined || (order === 'asc' ? turn > after : turn < after));
    const sizes = later.map(({ messages }) => messages.reduce((sum, one) => sum + Buffer.byteLength(JSON.stringify(one)), 0));
    const before = (index: number) => sizes.slice(0, index).reduce((sum, size) => sum + size, 0);
    const page = later.slice(0, limit).filter((_, index) => before(index) < maxBytes);
    for (const [index, { record = '' }] of page.entries()) reserve?.((sizes[index] ?? 0) + Buffer.byteLength(record));
    return structuredClone(page);
  }

  async putSummary(id: SessionId, version: number, summary: Summary): Promise<void> {
    const session = this.sessions.get(this.keyOf(id));
    if (session && this.versionOf(id) === version) session.summary = { ...summary };
  }

  async fork(id: SessionId, key: string, turns: number): Promise<void> {
    const copy = { ...id, key };
    if (this.sessions.has(this.keyOf(copy))) throw new SessionExists();
    const session = this.sessions.get(this.keyOf(id));
    if (!session) return;
    const { metadata, user, title, summary } = session;
    const records = new Map([...session.records].filter(([turn]) => turn <= turns));
    const copied = session.turns.slice(0, turns);
    const covers = (summary?.messages ?? 0) <= copied.flat().length;
    this.add(copy, { metadata, user, title, turns: copied, records, summary: covers ? summary : undefined });
  }

  async putDocument(id: SessionId, name: string, text: string): Promise<void> {
    if (this.sessions.has(this.keyOf(id))) this.kept.documents.set(this.nameOf(id.project, name), { id: { ...id }, text });
  }

  async document(project: string, name: string): Promise<StoredDocument | undefined> {
    const found = this.kept.documents.get(this.nameOf(project, name));
    return found && this.sessions.has(this.keyOf(found.id)) ? structuredClone(found) : undefined;
  }

  async deleteDocument(project: string, name: string): Promise<number | undefined> {
    const found = this.kept.documents.get(this.nameOf(project, name));
    if (!found) return undefined;
    this.kept.documents.delete(this.nameOf(project, name));
    const kind = name.slice(0, name.indexOf('_') + 1);
    const left = [...this.kept.documents].filter(([, { id }]) => this.keyOf(id) === this.keyOf(found.id));
    return left.filter(([one]) => one.includes(`"${kind}`)).length;
  }

  nameOf(project: string, name: string): string {
    return JSON.stringify([project, name]);
  }

  async delete(id: SessionId): Promise<boolean> {
    for (const session of this.sessions.values()) if (session.parent === this.keyOf(id)) await this.delete(session.id);
    if (!this.sessions.has(this.keyOf(id))) return false;
    const tombstone = { version: this.versionOf(id) + 1, until: this.clock.monotonic() + 30 * DAY };
    this.kept.tombstones.set(this.keyOf(id), tombstone);
    this.sessions.delete(this.keyOf(id));
    for (const [name, document] of this.kept.documents) {
      if (this.keyOf(document.id) === this.keyOf(id)) this.kept.documents.delete(name);
    }
    for (const [name, { session }] of this.kept.approvals) {
      if (this.keyOf(session) === this.keyOf(id)) this.kept.approvals.delete(name);
    }
    for (const turn of this.begun.values()) if (this.keyOf(turn.id) === this.keyOf(id)) this.begun.delete(turn.turnId);
    return true;
  }

  async health(): Promise<{ readonly ok: boolean; readonly reason?: string }> {
    return { ok: true };
  }

  keyOf({ project, agent, key }: SessionId): string {
    return JSON.stringify([project, agent, key]);
  }
}

type Store = new (clock: ManualClock, kept: StoredData) => PlainStore;

function casesFor(Store: Store): readonly Case[] {
  const clock = new ManualClock();
  const over = (kept: StoredData) => ({ store: new Store(clock, kept) });
  const reopen = ({ store }: OpenedStore) => over((store as PlainStore).kept);
  return casesOf((test) => sessionStoreContract(test, { open: () => over(new StoredData(clock)), clock, reopen }));
}

/** Which cases find fault with a store. */
export async function failingCases(Store: Store): Promise<readonly string[]> {
  return failing(casesFor(Store));
}

/** Whether the case of that name finds fault with a store. */
export async function fails(Store: Store, name: string): Promise<boolean> {
  return (await verdict(casesFor(Store), name)) !== undefined;
}
