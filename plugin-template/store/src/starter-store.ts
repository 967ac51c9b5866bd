import { type Clock, type Message, type SessionStore, type StateChange, StateFull, type StateStore } from '@plugboard/kernel';
import {
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
  type StoredSession,
  type StoredTurn,
  type Summary,
  sessionTitle,
  type TurnBegin,
  type TurnCommit,
  type TurnPage,
  VersionConflict,
} from '@plugboard/kernel/contracts';
import { type PluginValue, type Session, State, StateFile } from './state.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** Where a session is in the order of all: sessions of the same time by their creation. */
interface Place {
  readonly updatedAt: number;
  readonly sequence: number;
}

/**
 * Stores sessions in one JSON file.
 *
 * Every change is made on a copy of the state, one change after the other. The copy is written to
 * the disk, and then replaces the state: a caller gets an answer only when the change is durable.
 * This is simple and slow. For a real store, replace `#change` by a transaction of your database.
 */
export class StarterStore implements SessionStore {
  readonly #file: StateFile;
  readonly #clock: Clock;
  #state = new State();
  /** The fingerprints of the requests that run, by idempotency key. */
  readonly #claims = new Map<string, string>();
  /** Turns that another process had begun. */
  #interrupted: readonly InterruptedTurn[] = [];
  #lastChange: Promise<unknown> = Promise.resolve();

  constructor(path: string, clock: Clock) {
    this.#file = new StateFile(path);
    this.#clock = clock;
  }

  /** Reads the file. Call it once, before anything else. */
  async open(): Promise<void> {
    this.#state = await this.#file.read();
    this.#interrupted = [...this.#state.begun.values()];
  }

  async load(id: SessionId): Promise<StoredSession> {
    const session = this.#state.sessions.get(keyOf(id));
    const messages = session?.turns.flat() ?? [];
    return structuredClone({
      version: this.#version(this.#state, id),
      turns: session?.turns.length ?? 0,
      messages,
      bytes: bytesOf(messages),
      summary: session?.summary,
    });
  }

  async version(id: SessionId): Promise<number> {
    return this.#version(this.#state, id);
  }

  begin(id: SessionId, { turnId, input, parent }: TurnBegin): Promise<void> {
    return this.#change(({ begun, parents }) => {
      begun.set(turnId, { id, turnId, input });
      if (parent) parents.set(keyOf(id), conversationId(parent));
    });
  }

  async commit(id: SessionId, turn: TurnCommit): Promise<void> {
    const { turnId, expected, messages, record, user, idempotency, state: changes = [], approvals = [] } = turn;
    await this.#change((state) => {
      const version = this.#version(state, id);
      if (version !== expected) throw new VersionConflict(expected, version);
      const session = state.sessions.get(keyOf(id)) ?? this.#add(state, id, {});
      const number = session.turns.push(structuredClone(messages));
      if (record !== undefined) session.records[number] = record;
      session.user = user ?? session.user;
      session.title ??= sessionTitle(messages);
      session.updatedAt = this.#clock.now();
      if (turnId !== undefined) state.begun.delete(turnId);
      if (idempotency) this.#putAnswer(state, idempotency);
      const conflict = this.#conflict(state, changes);
      if (conflict) throw new VersionConflict(expected, conflict);
      this.#changeValues(state, changes);
      for (const approval of approvals) state.approvals.set(nameOf(id.project, approval.id), { ...approval, session: { ...id } });
    });
    if (idempotency) this.#endClaim(idempotency);
  }

  abandon(_: SessionId, turnId: string): Promise<void> {
    return this.#change(({ begun }) => void begun.delete(turnId));
  }

  recover(): Promise<readonly InterruptedTurn[]> {
    return this.#change(({ begun }) => {
      const turns = this.#interrupted.filter(({ turnId }) => begun.delete(turnId));
      this.#interrupted = [];
      return turns;
    });
  }

  create(id: SessionId, { metadata, messages }: NewSession): Promise<void> {
    return this.#change((state) => {
      if (state.sessions.has(keyOf(id))) throw new SessionExists();
      this.#add(state, id, { metadata, title: sessionTitle(messages), turns: messages.length > 0 ? [messages] : [] });
    });
  }

  async info(id: SessionId): Promise<SessionInfo | undefined> {
    const session = this.#state.sessions.get(keyOf(id));
    return session && infoOf(session);
  }

  async find(project: string, conversation: string): Promise<SessionInfo | undefined> {
    const all = await this.list(project, { limit: Number.POSITIVE_INFINITY, order: 'asc' });
    return all.find((info) => info.conversation === conversation);
  }

  async list(project: string, { limit, order, after, user, agents }: SessionPage): Promise<readonly SessionInfo[]> {
    const { sessions, parents } = this.#state;
    const own = [...sessions.values()].map(infoOf).filter(({ id }) => id.project === project && !parents.has(keyOf(id)));
    const sequence = own.findIndex(({ conversation }) => conversation === after?.conversation);
    const places = own.map((info, at) => ({ info, updatedAt: info.updatedAt, sequence: at }));
    const sign = order === 'asc' ? 1 : -1;
    const compare = (a: Place, b: Place) => sign * (a.updatedAt - b.updatedAt || a.sequence - b.sequence);
    return places
      .filter(({ info }) => (agents?.includes(info.id.agent) ?? true) && (user === undefined || info.user === user))
      .filter((place) => after === undefined || compare(place, { updatedAt: after.updatedAt, sequence }) > 0)
      .sort(compare)
      .slice(0, limit)
      .map(({ info }) => info);
  }

  setMetadata(id: SessionId, metadata: Metadata): Promise<void> {
    return this.#change(({ sessions }) => {
      const session = sessions.get(keyOf(id));
      if (session) Object.assign(session, { metadata: structuredClone(metadata) });
    });
  }

  async turns(
    id: SessionId,
    { limit, order, after, maxBytes = Number.POSITIVE_INFINITY, reserve }: TurnPage,
  ): Promise<readonly StoredTurn[]> {
    const { turns: stored = [], records = {} } = this.#state.sessions.get(keyOf(id)) ?? {};
    const turns: StoredTurn[] = stored.map((messages, i) => ({ turn: i + 1, messages, ...recordOf(records[i + 1]) }));
    if (order === 'desc') turns.reverse();
    const later = turns.filter(({ turn }) => after === undefined || (order === 'asc' ? turn > after : turn < after));
    let bytes = 0;
    const fitting = later.filter(({ messages }, i) => {
      const isFull = i > 0 && bytes >= maxBytes;
      bytes += bytesOf(messages);
      return !isFull;
    });
    const page = fitting.slice(0, limit);
    for (const turn of page) reserve?.(bytesOf(turn.messages)); // throws if the reader may not hold it
    return structuredClone(page);
  }

  putSummary(id: SessionId, version: number, summary: Summary): Promise<void> {
    return this.#change((state) => {
      const session = state.sessions.get(keyOf(id));
      if (session && this.#version(state, id) === version) session.summary = { ...summary };
    });
  }

  fork(id: SessionId, key: string, turns: number): Promise<void> {
    return this.#change((state) => {
      const copy = { ...id, key };
      if (state.sessions.has(keyOf(copy))) throw new SessionExists();
      const session = state.sessions.get(keyOf(id));
      if (!session) return;
      const { metadata, user, title, summary } = session;
      const copied = session.turns.slice(0, turns);
      const records = recordsUpTo(turns, session.records);
      const isCovered = (summary?.messages ?? 0) <= copied.flat().length;
      this.#add(state, copy, { metadata, user, title, turns: copied, records, summary: isCovered ? summary : undefined });
    });
  }

  delete(id: SessionId): Promise<boolean> {
    return this.#change((state) => {
      const children = [...state.sessions.values()].filter(({ id: own }) => state.parents.get(keyOf(own)) === conversationId(id));
      for (const child of children) this.#remove(state, child.id);
      return this.#remove(state, id);
    });
  }

  #remove(state: State, id: SessionId): boolean {
    const key = keyOf(id);
    if (!state.sessions.has(key)) return false;
    // Commits that loaded the session before must fail.
    state.tombstones.set(key, { version: this.#version(state, id) + 1, until: this.#clock.now() + 30 * DAY });
    state.sessions.delete(key);
    state.parents.delete(key);
    for (const [name, document] of state.documents) if (keyOf(document.id) === key) state.documents.delete(name);
    for (const [name, { session }] of state.approvals) if (keyOf(session) === key) state.approvals.delete(name);
    for (const [turnId, turn] of state.begun) if (keyOf(turn.id) === key) state.begun.delete(turnId);
    return true;
  }

  readonly pendingToolCalls: PendingToolCalls = {
    save: (owner, callIds, messages) =>
      this.#change(({ calls }) => {
        const saved = { messages: structuredClone(messages), until: this.#clock.now() + HOUR };
        for (const key of callIds) calls.set(keyOf({ ...owner, key }), saved);
      }),
    find: async (owner, keys) => {
      const pending = keys.map((key) => [key, this.#pendingCall(owner, key)] as const);
      return new Map(pending.flatMap(([key, messages]) => (messages ? [[key, JSON.stringify(messages).length]] : [])));
    },
    load: async (owner, key) => structuredClone(this.#pendingCall(owner, key)),
  };

  #pendingCall(owner: PendingToolCallsOwner, key: string): readonly Message[] | undefined {
    const found = this.#state.calls.get(keyOf({ ...owner, key }));
    return found && found.until > this.#clock.now() ? found.messages : undefined;
  }

  readonly documents: DocumentStore = {
    put: (id, name, text) =>
      this.#change(({ sessions, documents }) => {
        if (sessions.has(keyOf(id))) documents.set(nameOf(id.project, name), { id: { ...id }, text });
      }),
    get: async (project, name, reserve) => {
      const found = this.#state.documents.get(nameOf(project, name));
      if (!found || !this.#state.sessions.has(keyOf(found.id))) return undefined;
      reserve?.(Buffer.byteLength(found.text));
      return structuredClone(found);
    },
    delete: (project, name) =>
      this.#change(({ documents }) => {
        const found = documents.get(nameOf(project, name));
        if (!found) return undefined;
        documents.delete(nameOf(project, name));
        const kind = nameOf(project, name.slice(0, name.indexOf('_') + 1)).slice(0, -2); // without its end
        const left = [...documents].filter(([, { id }]) => keyOf(id) === keyOf(found.id));
        return left.filter(([other]) => other.startsWith(kind)).length;
      }),
  };

  readonly approvals: ApprovalStore = {
    get: async (project, ids, reserve) =>
      ids.flatMap((id) => {
        const found = this.#state.approvals.get(nameOf(project, id));
        if (found) reserve?.(Buffer.byteLength(found.text));
        return structuredClone(found) ?? [];
      }),
    find: async (project, id) => {
      const found = this.#state.approvals.get(nameOf(project, id));
      return found && listedOf(found);
    },
    waiting: async (project, { limit, order, after, agents, caller, expiresAfter = 0, reserve }) => {
      const all = [...this.#state.approvals.values()].filter(({ session }) => session.project === project);
      if (order === 'desc') all.reverse();
      const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
      if (after !== undefined && start === 0) return [];
      const page = all
        .slice(start)
        .filter(({ waits, session }) => waits && (agents?.includes(session.agent) ?? true))
        .filter((one) => one.expiresAt > expiresAfter && (caller === undefined || one.caller === caller))
        .slice(0, limit);
      for (const { listed } of page) reserve?.(Buffer.byteLength(listed));
      return page.map(listedOf);
    },
    replace: ({ id, session, text }: StoredApproval, change) =>
      this.#change(({ approvals }) => {
        const name = nameOf(session.project, id);
        const found = approvals.get(name);
        if (found?.text !== text) return false;
        approvals.set(name, { ...found, waits: change.waits, text: change.text });
        return true;
      }),
  };

  readonly idempotency: IdempotencyStore = {
    claim: async (key, fingerprint, reserve) => {
      const name = answerKeyOf(key);
      const running = this.#claims.get(name);
      if (running !== undefined) return { key, fingerprint: running, result: 'running' };
      const found = this.#state.answers.get(name);
      if (!found || found.until <= this.#clock.now()) {
        this.#claims.set(name, fingerprint);
        return undefined;
      }
      const { result } = found.record;
      if (result !== 'began') reserve?.(Buffer.byteLength(result.text));
      return structuredClone(found.record);
    },
    put: async (record) => {
      await this.#change((state) => this.#putAnswer(state, record));
      this.#endClaim(record);
    },
    release: async (key) => void this.#claims.delete(answerKeyOf(key)),
  };

  readonly state: StateStore = {
    get: async (entry, key) => this.#valuesOf(this.#state, entry).get(key)?.text,
    change: (changes) =>
      this.#change((state) => {
        if (this.#conflict(state, changes)) return false;
        this.#changeValues(state, changes);
        return true;
      }),
    list: async (entry, { prefix, after, limit }) =>
      [...this.#valuesOf(this.#state, entry)]
        .filter(([key]) => key.startsWith(prefix) && (after === undefined || compareBytes(key, after) > 0))
        .sort(([a], [b]) => compareBytes(a, b))
        .slice(0, limit)
        .map(([key, { text }]) => ({ key, text })),
  };

  async health(): Promise<{ readonly ok: boolean; readonly reason?: string }> {
    try {
      await this.#change(() => undefined);
      return { ok: true };
    } catch (error) {
      return { ok: false, reason: `the session file cannot be written: ${(error as Error).message}` };
    }
  }

  /**
   * Makes one change after the other. If it throws or cannot be written, the state stays as it was.
   */
  #change<T>(change: (state: State) => T): Promise<T> {
    const next = this.#lastChange.then(async () => {
      const state = this.#state.copy();
      const result = change(state);
      this.#dropExpired(state);
      await this.#file.write(state);
      this.#state = state;
      return result;
    });
    this.#lastChange = next.catch(() => undefined);
    return next;
  }

  #dropExpired(state: State): void {
    for (const map of [state.tombstones, state.calls, state.answers]) {
      for (const [key, { until }] of map) if (until <= this.#clock.now()) map.delete(key);
    }
  }

  /** What an entry keeps and has not expired. */
  #valuesOf(state: State, entry: string): Map<string, PluginValue> {
    const now = this.#clock.now();
    return new Map([...(state.values.get(entry) ?? [])].filter(([, { until = Number.POSITIVE_INFINITY }]) => until > now));
  }

  /** The first change that expects another value than its key has. */
  #conflict(state: State, changes: readonly StateChange[]): StateChange | undefined {
    const textOf = ({ entry, key }: StateChange) => this.#valuesOf(state, entry).get(key)?.text ?? null;
    return changes.find((change) => change.expected !== undefined && change.expected !== textOf(change));
  }

  /** What throws here changes nothing: the state is a copy. */
  #changeValues(state: State, changes: readonly StateChange[]): void {
    for (const [entry, own] of Map.groupBy(changes, (change) => change.entry)) {
      const values = this.#valuesOf(state, entry);
      for (const { key, text, expiresIn } of own) {
        if (text === undefined) values.delete(key);
        else values.set(key, { text, ...(expiresIn !== undefined && { until: this.#clock.now() + expiresIn }) });
      }
      if (values.size > StateFull.LIMIT) throw new StateFull(entry);
      state.values.set(entry, values);
    }
  }

  #version(state: State, id: SessionId): number {
    const session = state.sessions.get(keyOf(id));
    return session ? session.base + session.turns.length : this.#deletedVersion(state, id);
  }

  #deletedVersion(state: State, id: SessionId): number {
    const tombstone = state.tombstones.get(keyOf(id));
    return tombstone && tombstone.until > this.#clock.now() ? tombstone.version : 0;
  }

  #add(state: State, id: SessionId, more: Partial<Session>): Session {
    const now = this.#clock.now();
    const base = this.#deletedVersion(state, id);
    const empty = { user: undefined, title: undefined, metadata: {}, turns: [], records: {}, summary: undefined };
    const session = { id: { ...id }, base, createdAt: now, updatedAt: now, ...empty, ...structuredClone(more) };
    state.sessions.set(keyOf(id), session);
    return session;
  }

  /** An answer ends the claim of its key. */
  #endClaim({ key, result }: IdempotencyRecord): void {
    if (result !== 'began') this.#claims.delete(answerKeyOf(key));
  }

  #putAnswer({ answers }: State, record: IdempotencyRecord): void {
    answers.set(answerKeyOf(record.key), { record: structuredClone(record), until: this.#clock.now() + DAY });
  }
}

/** Parts of a key come from requests: JSON keeps them apart, whatever they contain. */
function keyOf({ project, agent, key }: SessionId): string {
  return JSON.stringify([project, agent, key]);
}

/** An approval without its text. */
function listedOf({ text: _, ...listed }: StoredApproval): Omit<StoredApproval, 'text'> {
  return structuredClone(listed);
}

function nameOf(project: string, name: string): string {
  return JSON.stringify([project, name]);
}

function answerKeyOf({ project, route, key }: IdempotencyKey): string {
  return JSON.stringify([project, route, key]);
}

/** The order of the bytes of UTF-8, which a database has, too. */
function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function recordsUpTo(turns: number, records: Record<number, string>): Record<number, string> {
  return Object.fromEntries(Object.entries(records).filter(([turn]) => Number(turn) <= turns));
}

function recordOf(record: string | undefined): Pick<StoredTurn, 'record'> {
  return record === undefined ? {} : { record };
}

function bytesOf(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + Buffer.byteLength(JSON.stringify(message)), 0);
}

function infoOf({ id, createdAt, updatedAt, user, title, metadata, turns }: Session): SessionInfo {
  const bytes = bytesOf(turns.flat());
  const conversation = conversationId(id);
  return structuredClone({ id, conversation, createdAt, updatedAt, turns: turns.length, bytes, user, title, metadata });
}
