import type {
  Clock,
  IdempotencyStore,
  InterruptedTurn,
  Lifecycle,
  Logger,
  Message,
  ParkOwner,
  SessionId,
  SessionStore,
  StoredSession,
  Timer,
  TurnBegin,
  TurnCommit,
} from '@plugboard/kernel';
import { explained, notOpen, StoreError } from './errors.js';
import { GroupCommit } from './group-commit.js';
import { Health } from './health.js';
import { type OpenedFile, openFile } from './open-file.js';
import { SessionFile } from './session-file.js';
import { encoded, encodedList } from './stored-message.js';

/** How long sweeping rests when there is nothing left to delete, and between two steps while there is. */
const SWEEP_EVERY = 10 * 60_000;
const SWEEP_PAUSE = 50;

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
  readonly file: SessionFile;
  readonly writes: GroupCommit;
  readonly health: Health;
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
  readonly idempotency: IdempotencyStore = {
    get: async (key) => this.#read(({ answers }) => answers.get(key)),
    put: (record) => this.#write(true, ({ answers }) => answers.put(record)),
  };
  readonly #parts: SqliteStoreParts;
  readonly #openFile: typeof openFile;
  #opened: Opened | undefined;
  #sweeping: Timer | undefined;

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
        file: new SessionFile(path, opened, clock),
        writes: new GroupCommit(opened.database),
        health: new Health(opened.database, path, clock, log),
      };
    } catch (error) {
      opened.database.close();
      throw explained(error, path);
    }
    this.#sweepAfter(SWEEP_EVERY);
  }

  async load(id: SessionId): Promise<StoredSession> {
    return this.#read((file) => file.load(id));
  }

  async version(id: SessionId): Promise<number> {
    return this.#read((file) => file.version(id));
  }

  async begin(id: SessionId, { turnId, input }: TurnBegin): Promise<void> {
    const text = encodedList(input);
    await this.#write(false, (file) => file.begin(id, turnId, text));
  }

  async commit(id: SessionId, { turnId, expected, messages, idempotency }: TurnCommit): Promise<void> {
    const bodies = encoded(messages);
    await this.#write(true, (file) => {
      file.commit(id, turnId, expected, bodies);
      if (idempotency) file.answers.put(idempotency);
    });
  }

  async abandon(id: SessionId, turnId: string): Promise<void> {
    await this.#write(false, (file) => file.endTurn(id, turnId));
  }

  async recover(): Promise<readonly InterruptedTurn[]> {
    const found = await this.#write(true, (file) => file.recover());
    const turns: InterruptedTurn[] = [];
    for (const turn of found) {
      if (turn instanceof StoreError) this.#parts.log.error({ err: turn }, 'an interrupted turn cannot be read');
      else turns.push(turn);
    }
    return turns;
  }

  async park(owner: ParkOwner, keys: readonly string[], messages: readonly Message[]): Promise<void> {
    const text = encodedList(messages);
    await this.#write(true, (file) => file.park(owner, keys, text));
  }

  async parked(owner: ParkOwner, key: string): Promise<readonly Message[] | undefined> {
    return this.#read((file) => file.parked(owner, key));
  }

  async health(): Promise<{ readonly ok: boolean; readonly reason?: string }> {
    return this.#opened?.health.now() ?? { ok: false, reason: notOpen(this.#parts.path).message };
  }

  stop(): void {
    const opened = this.#opened;
    if (!opened) return;
    this.#sweeping?.cancel();
    this.#opened = undefined;
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

  #read<T>(work: (file: SessionFile) => T): T {
    const { file, health } = this.#open();
    try {
      return work(file);
    } catch (error) {
      throw health.noted(explained(error, this.#parts.path));
    }
  }

  async #write<T>(isDurable: boolean, work: (file: SessionFile) => T): Promise<T> {
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

  #sweepAfter(ms: number): void {
    this.#sweeping = this.#parts.clock.after(ms, () => {
      const sweep = this.#write(false, (file) => file.sweep(this.#parts.ttl));
      sweep.then(
        (more) => this.#sweepOn(more ? SWEEP_PAUSE : SWEEP_EVERY),
        (err: unknown) => {
          this.#parts.log.warn({ err }, 'could not delete what has expired; it is tried again later');
          this.#sweepOn(SWEEP_EVERY);
        },
      );
    });
  }

  #sweepOn(ms: number): void {
    if (this.#opened) this.#sweepAfter(ms);
  }
}
