import type { SessionStore, StateStore } from '@plugboard/kernel';
import type {
  ApprovalStore,
  DocumentStore,
  IdempotencyStore,
  InterruptedTurn,
  Metadata,
  NewSession,
  PendingToolCalls,
  SessionId,
  SessionInfo,
  SessionPage,
  SharedStore,
  StoredSession,
  StoredTurn,
  Summary,
  TurnBegin,
  TurnCommit,
  TurnPage,
} from '@plugboard/kernel/contracts';
import { sessionTitle, VersionConflict } from '@plugboard/kernel/contracts';
import { encodeMessageList, encodeMessages, encodeMetadata, LocalClaims, readable, sizeOf } from '@plugboard/store-kit';
import type { Query } from './database/connection-pool.js';
import { Database, type DatabaseOptions } from './database/database.js';
import { explainError, type Server } from './errors/postgres-error.js';
import { notOpen, StoreError, type StoreErrorCode } from './errors/store-error.js';
import { OpenStore, type PostgresStoreOptions } from './open-store.js';
import { idColumns } from './tables/columns.js';
import { recordColumns } from './tables/idempotency-table.js';
import { newTurn } from './tables/session-table.js';
import { stateColumns } from './tables/state-table.js';

/** Errors that concern the store as a whole and not one turn. */
const STORE_FAILURES: ReadonlySet<StoreErrorCode> = new Set(['unreachable', 'read_only', 'disk_full', 'refused']);

/**
 * Keeps sessions in a schema of PostgreSQL that several servers share.
 *
 * 1. `start` creates or migrates the schema, and inserts this server's row, its lease (replica.ts).
 * 2. Each operation is one statement or one transaction, on a connection that is given back after
 *    it. A connection that fails costs a retry. A write is acknowledged when it is committed.
 * 3. A commit stores a turn if the session has the version that was loaded, and the server its
 *    lease. Both are checked by the statement that stores. What else it stores makes it a
 *    transaction.
 * 4. Turns wait for those of other servers in the line of their session (shared/turn-line.ts).
 * 5. From time to time some expired rows are deleted.
 * 6. `stop` gives the lease back.
 */
export class PostgresStore implements SessionStore {
  readonly pendingToolCalls: PendingToolCalls = {
    save: async (owner, keys, messages) => {
      const text = encodeMessageList(messages);
      await this.#call(async ({ tables: { usage, pendingCalls } }) => {
        await usage.assertFits(owner.project, Buffer.byteLength(text));
        await pendingCalls.save(owner, keys, text);
      });
    },
    find: (owner, keys) => this.#call(({ tables: { pendingCalls } }) => pendingCalls.find(owner, keys)),
    load: (owner, key) => this.#call(({ tables: { pendingCalls } }) => pendingCalls.load(owner, key)),
  };
  readonly documents: DocumentStore = {
    put: (id, name, text) => this.#call(({ tables: { documents } }) => documents.put(id, name, text)),
    get: (project, name, reserve) => this.#call(({ tables: { documents } }) => documents.get(project, name, reserve)),
    delete: (project, name) => this.#call(({ tables: { documents } }) => documents.delete(project, name)),
  };
  readonly approvals: ApprovalStore = {
    get: (project, ids, reserve) => this.#call(({ tables: { approvals } }) => approvals.get(project, ids, reserve)),
    find: (project, id) => this.#call(({ tables: { approvals } }) => approvals.find(project, id)),
    waiting: (project, page) => this.#call(({ tables: { approvals } }) => approvals.waiting(project, page)),
    replace: (read, change) => this.#call(({ tables: { approvals } }) => approvals.replace(read, change)),
  };
  readonly idempotency: IdempotencyStore = {
    claim: (key, fingerprint, reserve) =>
      this.#claims.claim(key, fingerprint, () =>
        this.#call(({ tables: { idempotency }, replica }) => idempotency.claim(replica.id, key, fingerprint, reserve)),
      ),
    put: async (record) => {
      const columns = recordColumns(record);
      await this.#call(async ({ tables: { usage, idempotency }, replica: { id } }) => {
        await usage.assertFits(columns.project, columns.bytes);
        await idempotency.put(columns, id);
      });
      this.#claims.stored(record);
    },
    release: (key) =>
      this.#claims.release(key, () => this.#call(({ tables: { idempotency }, replica }) => idempotency.release(key, replica.id))),
  };
  readonly state: StateStore = {
    get: (entry, key) => this.#call(({ tables: { state } }) => state.get(entry, key)),
    change: (changes) => this.#call(({ tables: { state } }) => state.change(changes)),
    list: (entry, page) => this.#call(({ tables: { state } }) => state.list(entry, page)),
  };
  readonly shared: SharedStore = {
    acquire: async (id, turn, signal) => {
      const result = await this.#call(({ line }) => line.acquire(id, turn, signal));
      if (result.kind === 'lease' && result.lease.interrupted) this.#begun.add(result.lease.interrupted.turnId);
      return result;
    },
    endTurns: (id, why, signal, turnId) => this.#call(({ line }) => line.endTurns(id, why, signal, turnId)),
    findTurn: (project, turnId) => this.#call(({ tables }) => tables.line.sessionOf(project, turnId)),
    offer: (topic, open) => this.#open.offers.offer(topic, open),
    read: (topic, signal) => this.#read(topic, signal),
    count: (uses) => this.#call(({ tables }) => tables.rates.count(uses)),
    hold: (name, signal) => this.#call(({ holds }) => holds.hold(name, signal)),
    now: () => this.#open.replica.now(),
  };
  readonly #claims = new LocalClaims();
  readonly #options: PostgresStoreOptions;
  readonly #newDatabase: (options: DatabaseOptions) => Database;
  readonly #server: Server;
  /** The turns that this process began, or got as interrupted, and that have not ended. */
  readonly #begun = new Set<string>();
  #opened: OpenStore | undefined;

  /** @param newDatabase replaces the constructor in tests that need the statements. */
  constructor(options: PostgresStoreOptions, newDatabase = (given: DatabaseOptions) => new Database(given)) {
    this.#options = options;
    this.#newDatabase = newDatabase;
    const { host, pathname, username } = new URL(options.url);
    const database = decodeURIComponent(pathname.slice(1)) || username;
    this.#server = { address: host, database, user: decodeURIComponent(username), schema: options.schema };
  }

  /** @throws StoreError if the database cannot be used. */
  async start(): Promise<void> {
    const store = new OpenStore(this.#options, this.#server, this.#newDatabase);
    await store.open();
    this.#opened = store;
  }

  load(id: SessionId): Promise<StoredSession> {
    return this.#call(({ tables: { history }, cached }) => cached.reading(id, () => history.load(id)));
  }

  version(id: SessionId): Promise<number> {
    return this.#call(({ tables: { sessions } }) => sessions.version(id));
  }

  async begin(id: SessionId, { turnId, input, parent }: TurnBegin): Promise<void> {
    const text = encodeMessageList(input);
    await this.#call(({ tables: { turns }, replica, line }) =>
      turns.begin({ id, turnId, input: text, replica: replica.id, isInLine: line.has(turnId), parent }),
    );
    this.#begun.add(turnId);
  }

  async commit(id: SessionId, turn: TurnCommit): Promise<void> {
    const { turnId, expected, messages, user = null, idempotency: answer, state: changed = [], approvals: asked = [] } = turn;
    // Everything is read before the first await: what the caller passed may change then.
    const title = sessionTitle(messages) ?? null;
    const stored = newTurn({ id, expected, bodies: encodeMessages(messages), record: turn.record ?? null, user, title }, turnId);
    const record = answer && recordColumns(answer);
    const stateChanges = stateColumns(changed);
    await this.#call(async ({ tables: { usage, sessions, state, approvals, idempotency }, replica, database, line }) => {
      if (turnId === undefined) await usage.assertFits(id.project, stored.bytes, idColumns(id));
      const columns = approvals.columns(asked);
      const hasRow = turnId !== undefined && (this.#begun.has(turnId) || line.has(turnId));
      const storeTurn = (query: Query) => sessions.commit(query, stored, replica.id, hasRow);
      const storeAll = async (query: Query) => {
        const committed = await storeTurn(query);
        await state.apply(query, stateChanges, (change) => new VersionConflict(expected, change));
        if (asked.length > 0) await approvals.put(query, id.project, committed.session, columns);
        if (record) await idempotency.put(record, replica.id, query);
        return committed;
      };
      const wasStored = (query: Query) => sessions.hasTurn(query, stored);
      const isAlone = changed.length + asked.length === 0 && !record;
      const store = async () => {
        const committed = await (isAlone ? database.once(storeTurn, wasStored) : database.transaction(storeAll, wasStored));
        return committed?.isAwaited ?? true; // where the answer was lost, others may wait
      };
      await (hasRow ? line.ending(id, turnId, store) : store());
    });
    this.#claims.stored(answer);
    if (turnId !== undefined) this.#begun.delete(turnId);
  }

  async abandon(id: SessionId, turnId: string): Promise<void> {
    await this.#call(({ line }) => line.leave(id, turnId));
    this.#begun.delete(turnId);
  }

  async recover(): Promise<readonly InterruptedTurn[]> {
    const found = await this.#call(({ tables: { turns }, replica }) => turns.recover(replica.id));
    const interrupted = readable(found, (row) =>
      this.#opened?.logBadRow(row, 'an interrupted turn cannot be read and is skipped'),
    );
    for (const { turnId } of interrupted) this.#begun.add(turnId);
    return interrupted;
  }

  async create(id: SessionId, { metadata, messages }: NewSession): Promise<void> {
    const text = encodeMetadata(metadata);
    const bodies = encodeMessages(messages);
    const title = sessionTitle(messages) ?? null;
    await this.#call(async ({ tables: { usage, sessions } }) => {
      await usage.assertFits(id.project, Buffer.byteLength(text) + sizeOf(bodies), idColumns(id));
      await sessions.create(id, text, bodies, title);
    });
  }

  info(id: SessionId): Promise<SessionInfo | undefined> {
    return this.#call(({ tables: { sessionInfo } }) => sessionInfo.get(id));
  }

  find(project: string, conversation: string): Promise<SessionInfo | undefined> {
    return this.#call(({ tables: { sessionInfo } }) => sessionInfo.find(project, conversation));
  }

  async list(project: string, page: SessionPage): Promise<readonly SessionInfo[]> {
    const found = await this.#call(({ tables: { sessionInfo } }) => sessionInfo.list(project, page));
    return readable(found, (row) => this.#opened?.logBadRow(row, 'a session cannot be read and is left out of a list'));
  }

  async setMetadata(id: SessionId, metadata: Metadata): Promise<void> {
    const text = encodeMetadata(metadata);
    await this.#call(({ tables: { sessions } }) => sessions.setMetadata(id, text));
  }

  turns(id: SessionId, page: TurnPage): Promise<readonly StoredTurn[]> {
    return this.#call(({ tables: { history } }) => history.turns(id, page));
  }

  async putSummary(id: SessionId, version: number, { messages, text }: Summary): Promise<void> {
    await this.#call(({ tables: { sessions } }) => sessions.putSummary(id, version, { messages, text }));
  }

  async fork(id: SessionId, key: string, turns: number): Promise<void> {
    await this.#call(({ tables: { forks } }) => forks.fork(id, key, turns));
  }

  delete(id: SessionId): Promise<boolean> {
    return this.#call(({ tables: { sessions } }) => sessions.delete(id));
  }

  /** Why the store does not work, if it does not: what the last renewal or statement found. */
  failure(): Error | undefined {
    return this.#opened ? this.#opened.replica.failure : notOpen();
  }

  async health(): Promise<{ readonly ok: boolean; readonly reason?: string }> {
    const failure = this.failure();
    return failure ? { ok: false, reason: failure.message } : { ok: true };
  }

  async stop(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    await opened?.close();
  }

  get #open(): OpenStore {
    if (!this.#opened) throw notOpen();
    return this.#opened;
  }

  /** @throws StoreError, or what the work throws. */
  async #call<T>(work: (store: OpenStore) => Promise<T>): Promise<T> {
    const store = this.#open;
    try {
      return await work(store);
    } catch (error) {
      throw this.#explained(error, store);
    }
  }

  async *#read(...[topic, signal]: Parameters<SharedStore['read']>): ReturnType<SharedStore['read']> {
    const store = this.#open;
    try {
      yield* store.readers.read(topic, signal);
    } catch (error) {
      throw this.#explained(error, store);
    }
  }

  #explained(error: unknown, store: OpenStore): unknown {
    const explained = explainError(error, this.#server);
    if (explained instanceof StoreError && STORE_FAILURES.has(explained.code)) store.replica.fail(explained);
    return explained;
  }
}
