import { conversationId, type SessionId } from '@plugboard/kernel/contracts';
import type { Database } from '../database/database.js';

/** A version that no session has. */
const UNKNOWN = -1;
/** Sessions that are remembered. Beyond it, some histories are read once more than necessary. */
const MAX_SESSIONS = 10_000;

/**
 * Which histories may be used from memory. After a failover, a session may have other turns at the
 * same version: a lost connection may mean one. So each history is then read once again.
 */
export class CachedHistories {
  readonly #database: Pick<Database, 'losses'>;
  /** As many lost connections as when the sessions below were read. */
  #losses = 0;
  readonly #read = new Set<string>();

  constructor(database: Pick<Database, 'losses'>) {
    this.#database = database;
  }

  /** The version to compare a cached history with. */
  comparable(id: SessionId, version: number): number {
    this.#forget();
    return this.#losses === 0 || this.#read.has(conversationId(id)) ? version : UNKNOWN;
  }

  /** Runs the read of a history. */
  async reading<T>(id: SessionId, read: () => Promise<T>): Promise<T> {
    this.#forget();
    const before = this.#losses;
    const history = await read();
    this.#forget();
    if (this.#losses === before && before > 0) this.#read.add(conversationId(id));
    return history;
  }

  #forget(): void {
    const { losses } = this.#database;
    if (losses !== this.#losses || this.#read.size >= MAX_SESSIONS) this.#read.clear();
    this.#losses = losses;
  }
}
