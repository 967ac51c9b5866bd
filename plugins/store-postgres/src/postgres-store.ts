import type { Clock, Logger, SessionStore, StateStore } from '@plugboard/kernel';
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
  StoredSession,
  StoredTurn,
  Summary,
  TurnBegin,
  TurnCommit,
  TurnPage,
} from '@plugboard/kernel/contracts';
import { sessionTitle, VersionConflict } from '@plugboard/kernel/contracts';
import { BadRow, encodeMessageList, encodeMessages, encodeMetadata, LocalClaims, Sweeper, sizeOf } from '@plugboard/store-kit';
import { Database, type DatabaseOptions } from './database/database.js';
import { Replica } from './database/replica.js';
import { explainError, type Server } from './errors/postgres-error.js';
import { notOpen, StoreError, type StoreErrorCode } from './errors/store-error.js';
import { idColumns } from './tables/columns.js';
import { recordColumns } from './tables/idempotency-table.js';
import type { ProjectQuotas } from './tables/project-usage.js';
import { newTurn } from './tables/session-table.js';
import { stateColumns } from './tables/state-table.js';
import { type RowCaps, StoreTables } from './tables/store-tables.js';

interface PostgresStoreOptions extends Omit<DatabaseOptions, 'clock'> {
  /** Milliseconds for which a server that was killed keeps the schema. */
  readonly lease: number;
  /** Milliseconds from a session's last turn to its expiry. */
  readonly ttl: number;
  readonly quotas: ProjectQuotas;
  /** By default those of the contracts. */
  readonly caps?: RowCaps | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What exists between `start` and `stop`. */
interface OpenStore {
  readonly database: Database;
  readonly leases: Database;
  readonly tables: StoreTables;
  readonly replica: Replica;
  readonly sweeper: Sweeper;
}

/** Milliseconds that a start may take beyond the wait for the lease of a killed server. */
const START_TIME = 20_000;
/** Milliseconds that a renewal may take in the client: it is noticed in time that it fails. */
const RENEWAL_TIMEOUT = 2_500;
/** Errors that concern the store as a whole and not one turn. */
const STORE_FAILURES: ReadonlySet<StoreErrorCode> = new Set(['unreachable', 'read_only', 'disk_full', 'refused']);

/**
 * Keeps sessions in a schema of PostgreSQL that belongs to this server alone.
 *
 * 1. `start` creates or migrates the schema, and takes its lease (replica.ts).
 * 2. Each operation is one statement or one transaction, on a connection that is given back after
 *    it. A connection that fails costs a retry. A write is acknowledged when it is committed.
 * 3. A commit stores a turn if the session has the version that was loaded, and the server its
 *    lease. Both are checked by the statement that stores.
 * 4. From time to time some expired rows are deleted.
 * 5. `stop` gives the lease back.
 */
export class PostgresStore implements SessionStore {
  readonly pendingToolCalls: PendingToolCalls = {
    save: async (owner, keys, messages) => {
      const text = encodeMessageList(messages);
      await this.#call(async ({ usage, pendingCalls }) => {
        await usage.assertFits(owner.project, Buffer.byteLength(text));
        await pendingCalls.save(owner, keys, text);
      });
    },
    find: (owner, keys) => this.#call(({ pendingCalls }) => pendingCalls.find(owner, keys)),
    load: (owner, key) => this.#call(({ pendingCalls }) => pendingCalls.load(owner, key)),
  };
  readonly documents: DocumentStore = {
    put: (id, name, text) => this.#call(({ documents }) => documents.put(id, name, text)),
    get: (project, name, reserve) => this.#call(({ documents }) => documents.get(project, name, reserve)),
    delete: (project, name) => this.#call(({ documents }) => documents.delete(project, name)),
  };
  readonly approvals: ApprovalStore = {
    get: (project, ids, reserve) => this.#call(({ approvals }) => approvals.get(project, ids, reserve)),
    find: (project, id) => this.#call(({ approvals }) => approvals.find(project, id)),
    waiting: (project, page) => this.#call(({ approvals }) => approvals.waiting(project, page)),
    replace: (read, change) => this.#call(({ approvals }) => approvals.replace(read, change)),
  };
  readonly idempotency: IdempotencyStore = {
    claim: (key, fingerprint, reserve) =>
      this.#claims.claim(key, fingerprint, () =>
        this.#call(({ idempotency }, { id }) => idempotency.claim(id, key, fingerprint, reserve)),
      ),
    put: async (record) => {
      const columns = recordColumns(record);
      await this.#call(async ({ usage, idempotency }, { id }) => {
        await usage.assertFits(columns.project, columns.bytes);
        await idempotency.put(columns, id);
      });
      this.#claims.stored(record);
    },
    release: (key) => this.#claims.release(key, () => this.#call(({ idempotency }, { id }) => idempotency.release(key, id))),
  };
  readonly state: StateStore = {
    get: (entry, key) => this.#call(({ state }) => state.get(entry, key)),
    change: (changes) => this.#call(({ state }) => state.change(changes)),
    list: (entry, page) => this.#call(({ state }) => state.list(entry, page)),
  };
  /** Milliseconds that `start` may take: as long as the lease of a killed server. */
  readonly startLimit: number;
  readonly #claims = new LocalClaims();
  readonly #options: PostgresStoreOptions;
  readonly #newDatabase: (options: DatabaseOptions) => Database;
  readonly #server: Server;
  /** The turns that this process began and that have not ended. */
  readonly #begun = new Set<string>();
  #opened: OpenStore | undefined;

  /** @param newDatabase replaces the constructor in tests that need the statements. */
  constructor(options: PostgresStoreOptions, newDatabase = (given: DatabaseOptions) => new Database(given)) {
    this.#options = options;
    this.#newDatabase = newDatabase;
    this.startLimit = options.lease + START_TIME;
    const { host, pathname, username } = new URL(options.url);
    const database = decodeURIComponent(pathname.slice(1)) || username;
    this.#server = { address: host, database, user: decodeURIComponent(username), schema: options.schema };
  }

  /**
   * @param signal ends the wait for another server's lease.
   * @throws StoreError if the database cannot be used, or another server uses the schema.
   */
  async start(signal?: AbortSignal): Promise<void> {
    const { lease, ttl, quotas, caps, clock, log } = this.#options;
    const database = this.#newDatabase(this.#options);
    const timeout = Math.min(RENEWAL_TIMEOUT, lease / 3);
    const leases = this.#newDatabase({ timeout, ...this.#options, poolSize: 1, patience: 0 });
    const replica = new Replica({ database: leases, server: this.#server, lease, clock, log });
    try {
      await replica.enter(database, signal);
    } catch (error) {
      database.close();
      leases.close();
      throw explainError(error, this.#server);
    }
    const tables = new StoreTables(database, quotas, ttl, caps);
    this.#opened = { database, leases, tables, replica, sweeper: this.#newSweeper() };
  }

  load(id: SessionId): Promise<StoredSession> {
    return this.#call(({ history }) => history.load(id));
  }

  version(id: SessionId): Promise<number> {
    return this.#call(({ sessions }) => sessions.version(id));
  }

  async begin(id: SessionId, { turnId, input, parent }: TurnBegin): Promise<void> {
    const text = encodeMessageList(input);
    await this.#call(({ turns }, { id: replica }) => turns.begin(id, turnId, text, replica, parent));
    this.#begun.add(turnId);
  }

  async commit(id: SessionId, turn: TurnCommit): Promise<void> {
    const { turnId, expected, messages, user = null, idempotency: answer, state: changed = [], approvals: asked = [] } = turn;
    // Everything is read before the first await: what the caller passed may change then.
    const title = sessionTitle(messages) ?? null;
    const stored = newTurn({ id, expected, bodies: encodeMessages(messages), record: turn.record ?? null, user, title }, turnId);
    const record = answer && recordColumns(answer);
    const stateChanges = stateColumns(changed);
    const hasBegun = turnId !== undefined && this.#begun.has(turnId);
    await this.#call(async ({ usage, sessions, state, approvals, idempotency }, replica, database) => {
      if (turnId === undefined) await usage.assertFits(id.project, stored.bytes, idColumns(id));
      const columns = approvals.columns(asked);
      await database.transaction(
        async (query) => {
          const session = await sessions.commit(query, stored, replica.id, hasBegun);
          await state.apply(query, stateChanges, (change) => new VersionConflict(expected, change));
          if (asked.length > 0) await approvals.put(query, id.project, session, columns);
          if (record) await idempotency.put(record, replica.id, query);
        },
        (query) => sessions.hasTurn(query, stored),
      );
    });
    this.#claims.stored(answer);
    if (turnId !== undefined) this.#begun.delete(turnId);
  }

  async abandon(_: SessionId, turnId: string): Promise<void> {
    await this.#call(({ turns }) => turns.end(turnId));
    this.#begun.delete(turnId);
  }

  async recover(): Promise<readonly InterruptedTurn[]> {
    const found = await this.#call(({ turns }) => turns.recover());
    return this.#withoutErrors(found, 'an interrupted turn cannot be read and is skipped');
  }

  async create(id: SessionId, { metadata, messages }: NewSession): Promise<void> {
    const text = encodeMetadata(metadata);
    const bodies = encodeMessages(messages);
    const title = sessionTitle(messages) ?? null;
    await this.#call(async ({ usage, sessions }) => {
      await usage.assertFits(id.project, Buffer.byteLength(text) + sizeOf(bodies), idColumns(id));
      await sessions.create(id, text, bodies, title);
    });
  }

  info(id: SessionId): Promise<SessionInfo | undefined> {
    return this.#call(({ sessionInfo }) => sessionInfo.get(id));
  }

  find(project: string, conversation: string): Promise<SessionInfo | undefined> {
    return this.#call(({ sessionInfo }) => sessionInfo.find(project, conversation));
  }

  async list(project: string, page: SessionPage): Promise<readonly SessionInfo[]> {
    const found = await this.#call(({ sessionInfo }) => sessionInfo.list(project, page));
    return this.#withoutErrors(found, 'a session cannot be read and is left out of a list');
  }

  async setMetadata(id: SessionId, metadata: Metadata): Promise<void> {
    const text = encodeMetadata(metadata);
    await this.#call(({ sessions }) => sessions.setMetadata(id, text));
  }

  turns(id: SessionId, page: TurnPage): Promise<readonly StoredTurn[]> {
    return this.#call(({ history }) => history.turns(id, page));
  }

  async putSummary(id: SessionId, version: number, { messages, text }: Summary): Promise<void> {
    await this.#call(({ sessions }) => sessions.putSummary(id, version, { messages, text }));
  }

  async fork(id: SessionId, key: string, turns: number): Promise<void> {
    await this.#call(({ forks }) => forks.fork(id, key, turns));
  }

  delete(id: SessionId): Promise<boolean> {
    return this.#call(({ sessions }) => sessions.delete(id));
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
    if (!opened) return;
    this.#opened = undefined;
    opened.sweeper.stop();
    try {
      await opened.replica.leave();
    } catch (error) {
      const err = explainError(error, this.#server);
      this.#options.log.warn({ err }, 'could not give the lease back: another server can start when it expires');
    }
    opened.database.close();
    opened.leases.close();
  }

  /** @throws StoreError, or what the work throws. */
  async #call<T>(work: (tables: StoreTables, replica: Replica, database: Database) => Promise<T>): Promise<T> {
    if (!this.#opened) throw notOpen();
    const { tables, replica, database } = this.#opened;
    try {
      return await work(tables, replica, database);
    } catch (error) {
      const explained = explainError(error, this.#server);
      if (explained instanceof StoreError && STORE_FAILURES.has(explained.code)) replica.fail(explained);
      throw explained;
    }
  }

  /** Returns what could be read, and logs the errors of the rest. */
  #withoutErrors<T extends object>(found: readonly (T | BadRow)[], message: string): readonly T[] {
    return found.filter((item): item is T => {
      if (item instanceof BadRow) this.#options.log.error({ err: explainError(item, this.#server) }, message);
      return !(item instanceof BadRow);
    });
  }

  #newSweeper(): Sweeper {
    const { clock, log } = this.#options;
    return new Sweeper(
      clock,
      () => this.#call((tables) => tables.sweep()),
      (err) => log.warn({ err }, 'could not delete expired rows; will retry'),
    );
  }
}
