import type { PluginState, StateChange } from '@plugboard/kernel';
import { KEYS } from './keys.js';

/**
 * UTF-16 units of JSON in one piece. A unit takes 3 bytes at most, twice that where the cut is, and
 * a value of `ctx.state` has 64 KiB.
 */
const PIECE = 20_000;
/** Values of one page when all are read. */
const PAGE = 100;

/** Values for keys of `ctx.state`. Undefined removes a key. */
export type Values = Readonly<Record<string, unknown>>;

/** A large value, in pieces beside its key. */
interface InPieces {
  readonly pieces: number;
}

/** A value that was encoded, and how much it is. */
export interface Encoded {
  readonly values: Values;
  readonly pieces: number;
  /** Characters of JSON. */
  readonly size: number;
}

/** The entry's `ctx.state`, also for values above 64 KiB. */
export class ChannelState {
  readonly #state: PluginState;

  constructor(state: PluginState) {
    this.#state = state;
  }

  /** Returns the values to store for a key, in pieces if one is not enough. */
  encode(key: string, value: object): Encoded {
    const text = JSON.stringify(value);
    if (text.length <= PIECE) return { values: { [key]: value }, pieces: 0, size: text.length };
    const pieces = Math.ceil(text.length / PIECE);
    const inPieces = Array.from({ length: pieces }, (_, n) => [KEYS.piece(key, n), text.slice(n * PIECE, (n + 1) * PIECE)]);
    return { values: { [key]: { pieces } satisfies InPieces, ...Object.fromEntries(inPieces) }, pieces, size: text.length };
  }

  /** Returns the values that remove a key with its pieces. */
  removal(key: string, pieces: number): Values {
    const keys = [key, ...Array.from({ length: pieces }, (_, n) => KEYS.piece(key, n))];
    return Object.fromEntries(keys.map((one) => [one, undefined]));
  }

  async get<T>(key: string): Promise<T | undefined> {
    const value = await this.#state.get(key);
    return (value === undefined ? undefined : await this.#whole(key, value)) as T | undefined;
  }

  /** Reads all values below a prefix, one after the other, in the order of their keys. */
  async *all<T>(prefix: string): AsyncGenerator<{ readonly key: string; readonly value: T } & Pick<Encoded, 'pieces' | 'size'>> {
    for (let after: string | undefined; ; ) {
      const page = await this.#state.list(prefix, { after, limit: PAGE });
      for (const { key, value } of page) {
        const pieces = isInPieces(value) ? value.pieces : 0;
        const whole = await this.#whole(key, value);
        yield { key: key.slice(prefix.length), value: whole as T, pieces, size: sizeOf(value) };
      }
      after = page.at(-1)?.key;
      if (page.length < PAGE) return;
    }
  }

  /** How many values are below a prefix, up to a limit, and the size of all that were counted. */
  async measure(prefix: string, limit: number): Promise<{ readonly count: number; readonly size: number }> {
    const found = await this.#state.list(prefix, { limit });
    return { count: found.length, size: found.reduce((sum, { value }) => sum + sizeOf(value), 0) };
  }

  changes(values: Values, expiresIn?: number): readonly StateChange[] {
    return this.#state.changes(values, expiresIn === undefined ? undefined : { expiresIn });
  }

  /** Stores values, all or nothing. */
  async store(values: Values, expiring: readonly StateChange[] = []): Promise<void> {
    await this.#state.apply([...this.changes(values), ...expiring]);
  }

  async #whole(key: string, value: unknown): Promise<unknown> {
    if (!isInPieces(value)) return value;
    let text = '';
    for (let n = 0; n < value.pieces; n++) text += await this.#state.get(KEYS.piece(key, n));
    return JSON.parse(text);
  }
}

function sizeOf(value: unknown): number {
  return isInPieces(value) ? value.pieces * PIECE : JSON.stringify(value).length;
}

function isInPieces(value: unknown): value is InPieces {
  return typeof value === 'object' && value !== null && Object.keys(value).join() === 'pieces';
}
