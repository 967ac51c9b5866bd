import type { PluginState } from '@plugboard/kernel';
import { CommandError } from '@plugboard/kernel/contracts';
import type { LastUses } from '../files/last-use.js';
import { type TokenRecord, TokensUnusable, tokenRecords } from '../tokens/token-record.js';
import type { TokenChange, TokenStorage } from './token-storage.js';

/** Each record is under its id. */
const RECORDS = 'token/';
/** The number of changes so far. Every change expects the one that it has read, and raises it. */
const CHANGES = 'changes';
/** When a token was last used, in milliseconds, under its id. */
const USES = 'used/';

/** Issued tokens in the state of the entry, in a store that servers share. */
export class StateStorage implements TokenStorage {
  readonly name = 'the database';
  readonly isShared = true;
  readonly #state: PluginState;
  readonly #now: () => number;

  /** @param now the time of the store. */
  constructor(state: PluginState, now: () => number) {
    this.#state = state;
    this.#now = now;
  }

  async signature(): Promise<string> {
    return String(await this.#state.get(CHANGES));
  }

  /** In the order in which they were created. */
  async read(): Promise<readonly TokenRecord[]> {
    const found = (await this.#state.list(RECORDS)).map(({ value }) => value);
    const damaged = (problem: string) =>
      new TokensUnusable(`the issued tokens in the database are damaged: ${problem}. Restore a backup`);
    return tokenRecords(found, damaged).toSorted((a, b) => Date.parse(a.createdAt) - Date.parse(b.createdAt));
  }

  async change<T>(work: TokenChange<T>): Promise<T> {
    try {
      for (;;) {
        const changes = await this.#state.get(CHANGES);
        const before = await this.read();
        const { records, result } = work(before);
        if (records === before) return result;
        const changed = records.filter((record) => !before.includes(record)).map((record) => [RECORDS + record.id, record]);
        const values = { ...Object.fromEntries(changed), [CHANGES]: Number(changes ?? 0) + 1 };
        if (await this.#state.apply(this.#state.changes(values, { expected: { [CHANGES]: changes } }))) return result;
      }
    } catch (error) {
      if (error instanceof CommandError) throw error;
      throw new CommandError(`the issued tokens were not changed: ${(error as Error).message}`);
    }
  }

  async lastUses(): Promise<LastUses> {
    const found = await this.#state.list(USES);
    return new Map(found.map(({ key, value }) => [key.slice(USES.length), Number(value)]));
  }

  async addUses(uses: LastUses): Promise<void> {
    const before = await this.lastUses();
    const later = [...uses].filter(([id, time]) => time > (before.get(id) ?? 0)).map(([id, time]) => [USES + id, time]);
    await this.#state.apply(this.#state.changes(Object.fromEntries(later)));
  }

  now(): number {
    return this.#now();
  }
}
