import type {
  Clock,
  DocumentStore,
  IdempotencyStore,
  InterruptedTurn,
  Lifecycle,
  Logger,
  Metadata,
  NewSession,
  PendingToolCalls,
  SessionId,
  SessionInfo,
  SessionPage,
  SessionStore,
  StoredSession,
  StoredTurn,
  Summary,
  TurnBegin,
  TurnCommit,
  TurnPage,
} from '@plugboard/kernel';
import { explained, notOpen, StoreError } from './errors.js';
import { GroupCommit } from './group-commit.js';
import { Health } from './health.js';
import { type OpenedFile, openFile } from './open-file.js';
import { StoreFile } from './store-file.js';
import { encoded, encodedList } from './stored-message.js';
import { encodedMetadata } from './stored-metadata.js';
import { Sweeper } from './sweeper.js';

export interface SqliteStoreParts {
  /** Of the file, absolute. */
  readonly path: string;
  /** Milliseconds after its last turn that a session is kept. */
  readonly ttl: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What there is only while the file is open. */
interface Opened extends OpenedFile {
  readonly file: StoreFile;
  readonly writes: GroupCommit;
  readonly health: Health;
  readonly sweeper: Sweeper;
}

/**
 * Keeps sessions in one file of this process alone.
 *
 * 1. `start` opens the file and takes its lock.
 * 2. Reads are answered at once; writes wait for the end of the tick, and are then written together (group-commit.ts). What a caller was told is on
 *    the disk; what only began, or was taken back, survives the process, and that is enough for it.
 * 3. Now and then a little of what has expired is deleted.
 * 4. `stop` writes what still waits, folds the write-ahead log into the file, and lets go of it.
 */
export class SqliteStore implements SessionStore, Lifecycle {
  readonly pendingToolCalls: PendingToolCalls = {
    save: async (owner, keys, messages) => {
      const text = encodedList(messages);
      await this.#write(true, ({ pendingCalls }) => pendingCalls.save(owner, keys, text));
    },
    load: async (owner, key) => this.#read(({ pendingCalls }) => pendingCalls.load(owner, key)),
  };
  readonly documents: DocumentStore = {
    put: (id, name, text) => this.#write(true, ({ documents }) => documents.put(id, name, text)),
    get: async (project, name) => this.#read(({ documents }) => documents.get(project, name)),
    delete: (project, name) => this.#write(true, ({ documents }) => documents.delete(project, name)),
  };
  readonly idempotency: IdempotencyStore = {
    get: async (key) => this.#read(({ answers }) => answers.get(key)),
    put: (record) => this.#write(true, ({ answers }) => answers.put(record)),
  };
  readonly #parts: SqliteStoreParts;
  readonly #openFile: typeof openFile;
  #opened: Opened | undefined;

  /** @param open lets a test get at the file that it opens. */
  constructor(parts: SqliteStoreParts, open = openFile) {
    this.#parts = parts;
    this.#openFile = open;
  }

  /** @throws StoreError where the file cannot be used, with the cure. */
  start(): void {
    const { path, clock, log } = this.#parts;
    const opened = this.#openFile(path);
    try {
      this.#opened = {
        ...opened,
        file: new StoreFile(path, opened, clock),
        writes: new GroupCommit(opened.database),
        health: new Health(opened.database, path, clock, log),
        sweeper: this.#sweeper(),
      };
    } catch (error) {
      opened.database.close();
      throw explained(error, path);
    }
  }

  async load(id: SessionId): Promise<StoredSession> {
    return this.#read(({ sessions }) => sessions.load(id));
  }

  async version(id: SessionId): Promise<number> {
    return this.#read(({ sessions }) => sessions.version(id));
  }

  async begin(id: SessionId, { turnId, input }: TurnBegin): Promise<void> {
    const text = encodedList(input);
    await this.#write(false, ({ begun }) => begun.begin(id, turnId, text));
  }

  async commit(id: SessionId, { turnId, expected, messages, user, idempotency }: TurnCommit): Promise<void> {
    const bodies = encoded(messages);
    await this.#write(true, ({ sessions, begun, answers }) => {
      sessions.commit(id, expected, bodies, user ?? null);
      if (turnId !== undefined) begun.end(id, turnId);
      if (idempotency) answers.put(idempotency);
    });
  }

  async abandon(id: SessionId, turnId: string): Promise<void> {
    await this.#write(false, ({ begun }) => begun.end(id, turnId));
  }

  async recover(): Promise<readonly InterruptedTurn[]> {
    const found = await this.#write(true, ({ begun }) => begun.recover());
    return this.#readable(found, 'an interrupted turn cannot be read');
  }

  async create(id: SessionId, { metadata, messages }: NewSession): Promise<void> {
    const text = encodedMetadata(metadata);
    const bodies = encoded(messages);
    await this.#write(true, ({ sessions }) => sessions.create(id, text, bodies));
  }

  async info(id: SessionId): Promise<SessionInfo | undefined> {
    return this.#read(({ info }) => info.of(id));
  }

  async find(project: string, conversation: string): Promise<SessionInfo | undefined> {
    return this.#read(({ info }) => info.find(project, conversation));
  }

  async list(project: string, page: SessionPage): Promise<readonly SessionInfo[]> {
    return this.#readable(
      this.#read(({ info }) => info.list(project, page)),
      'a session cannot be read, and was left out of a list',
    );
  }

  async setMetadata(id: SessionId, metadata: Metadata): Promise<void> {
    const text = encodedMetadata(metadata);
    await this.#write(true, ({ sessions }) => sessions.setMetadata(id, text));
  }

  async turns(id: SessionId, page: TurnPage): Promise<readonly StoredTurn[]> {
    return this.#read(({ sessions }) => sessions.turns(id, page));
  }

  async putSummary(id: SessionId, version: number, { messages, text }: Summary): Promise<void> {
    await this.#write(false, ({ sessions }) => sessions.putSummary(id, version, { messages, text }));
  }

  async fork(id: SessionId, key: string, turns: number): Promise<void> {
    await this.#write(true, ({ sessions }) => sessions.fork(id, key, turns));
  }

  async delete(id: SessionId): Promise<boolean> {
    const wasThere = await this.#write(true, ({ sessions, begun }) => {
      if (!sessions.delete(id)) return false;
      begun.forgetAll(id);
      return true;
    });
    if (wasThere) this.#opened?.sweeper.wake();
    return wasThere;
  }

  async health(): Promise<{ readonly ok: boolean; readonly reason?: string }> {
    return this.#opened?.health.now() ?? { ok: false, reason: notOpen(this.#parts.path).message };
  }

  stop(): void {
    const opened = this.#opened;
    if (!opened) return;
    this.#opened = undefined;
    opened.sweeper.stop();
    opened.writes.flush();
    try {
      opened.database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch (error) {
      const err = explained(error, this.#parts.path);
      this.#parts.log.warn(
        { err },
        'the write-ahead log stays beside the file, and is read when that is opened again: nothing is lost',
      );
    }
    opened.database.close();
  }

  #read<T>(work: (file: StoreFile) => T): T {
    const { file, health } = this.#open();
    try {
      return work(file);
    } catch (error) {
      throw health.noted(explained(error, this.#parts.path));
    }
  }

  async #write<T>(isDurable: boolean, work: (file: StoreFile) => T): Promise<T> {
    const { file, writes, health } = this.#open();
    try {
      return await writes.write(isDurable, () => work(file));
    } catch (error) {
      throw health.noted(explained(error, this.#parts.path));
    }
  }

  #open(): Opened {
    if (!this.#opened) throw notOpen(this.#parts.path);
    return this.#opened;
  }

  /** What could be read. What could not is one line in the log, with where it stands. */
  #readable<T extends object>(found: readonly (T | StoreError)[], message: string): readonly T[] {
    return found.filter((one): one is T => {
      if (one instanceof StoreError) this.#parts.log.error({ err: one }, message);
      return !(one instanceof StoreError);
    });
  }

  #sweeper(): Sweeper {
    const { clock, ttl, log } = this.#parts;
    return new Sweeper(
      clock,
      () => this.#write(false, (file) => file.sweep(ttl)),
      (err) => log.warn({ err }, 'could not delete what has expired; it is tried again later'),
    );
  }
}
