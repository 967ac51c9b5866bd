import { hash } from 'node:crypto';
import { recognizeAcrossCopies } from '../base/across-copies.js';
import { hostError, reasonOf } from '../base/errors.js';
import type { Exclusive } from './exclusive.js';
import type { ExtensionPoint } from './extension-point.js';

/**
 * The small state of one entry: an offset, a quota, who was let in. Nothing else reads it, and it
 * lasts as long as what the server stores. An entry that is renamed in the file begins without it.
 *
 * Keys have 1 to 512 bytes of UTF-8 without control characters. Values are JSON of up to 64 KiB. An
 * entry has up to 1,000,000 keys. What exceeds a limit is refused with an error that names the
 * limit, and changes nothing. A key that has expired does not exist, and counts no more.
 *
 * @public
 */
export interface PluginState {
  /** Returns the value of a key, or undefined. */
  get(key: string): Promise<unknown>;
  /** Stores a value, and when it expires, if it does. Once resolved, it is durable. */
  put(key: string, value: unknown, options?: StateOptions): Promise<void>;
  /**
   * Stores a value if the key still has the expected one; `undefined` for none. Of several writers,
   * also on different servers, one succeeds. A decision after a `get` needs it.
   *
   * @returns whether the value was stored.
   */
  compareAndSet(key: string, expected: unknown, value: unknown, options?: StateOptions): Promise<boolean>;
  /** Removes a key. Does nothing if there is none. */
  delete(key: string): Promise<void>;
  /**
   * Returns the keys that start with a prefix, with their values, in the order of the keys' bytes.
   * @param page.after the last key of the previous page.
   * @param page.limit the most keys to return. Without it, all of them.
   */
  list(
    prefix?: string,
    page?: { readonly after?: string | undefined; readonly limit?: number | undefined },
  ): Promise<readonly { readonly key: string; readonly value: unknown }[]>;
  /**
   * Changes for `apply`, or to store with others, all or nothing. `undefined` removes a key.
   * @param options.expected values that keys must still have, as in `compareAndSet`. If one has
   * another, nothing is stored, nor what the changes are stored with.
   */
  changes(
    values: Readonly<Record<string, unknown>>,
    options?: StateOptions & { readonly expected?: Readonly<Record<string, unknown>> | undefined },
  ): readonly StateChange[];
  /**
   * Stores changes of this entry, all or nothing. Once resolved, they are durable.
   * @returns whether they were stored: every key had the value that its change expects.
   */
  apply(changes: readonly StateChange[]): Promise<boolean>;
  /**
   * Waits until no other holder of the key is left, on this server or on another one with the same
   * store. For what must happen at one place at a time, such as polling. Keys that are held are
   * apart from those that have values.
   * @param signal ends the wait. What is held stays so until it is released.
   * @throws the signal's reason
   */
  exclusive(key: string, signal: AbortSignal): Promise<Exclusive>;
}

/** How values are stored. @public */
export interface StateOptions {
  /**
   * Milliseconds after which the key does not exist any more, from when it is stored: a positive
   * integer. Without it, the key stays.
   */
  readonly expiresIn?: number | undefined;
}

/** A change of one key of an entry's state. Made by `ctx.state.changes`. @public */
export interface StateChange {
  /** The entry that the key belongs to, for example `greeters.hello`. */
  readonly entry: string;
  readonly key: string;
  /** The value as JSON. Undefined: the key is removed. */
  readonly text: string | undefined;
  /**
   * Milliseconds from the change to the expiry of the key. Undefined: it stays, also where the
   * value before had an expiry.
   */
  readonly expiresIn?: number | undefined;
  /** The value as JSON that the key must have; null: it must have none. Undefined: any. */
  readonly expected?: string | null | undefined;
}

/**
 * What keeps the state of all entries. Keys and values are data, and valid. The keys of one entry
 * are never visible to another. A key that has expired does not exist for any method and does not
 * count; a store deletes it later, in small steps, and tells the time as for all that expires
 * (`ExpiryClock`).
 *
 * @public
 */
export interface StateStore {
  /** Returns the value of a key as JSON. */
  get(entry: string, key: string): Promise<string | undefined>;
  /**
   * Applies changes in their order, all or nothing, if the keys have the values that are `expected`
   * before the first change. No other change comes between. Once resolved, they are durable.
   * @returns whether they were applied.
   * @throws StateFull if an entry would then have more than `StateFull.LIMIT` keys, or the store
   * cannot hold so much.
   */
  change(changes: readonly StateChange[]): Promise<boolean>;
  /** Returns keys that start with `prefix` and come after `after`, in the order of their bytes. */
  list(
    entry: string,
    page: { readonly prefix: string; readonly after?: string | undefined; readonly limit?: number | undefined },
  ): Promise<readonly { readonly key: string; readonly text: string }[]>;
}

/** An entry has as many keys as it may have, or the store holds as much as it may. @public */
export class StateFull extends Error {
  /** The most keys of one entry. */
  static readonly LIMIT = 1_000_000;
  override readonly name = 'StateFull';

  static {
    recognizeAcrossCopies(StateFull, 'StateFull');
  }

  /** @param limit what is exceeded and what to do, as a clause. By default the number of keys. */
  constructor(entry: string, limit = `it already has ${StateFull.LIMIT} keys, which is the limit; delete some`) {
    super(`${entry} cannot store more in ctx.state: ${limit}`);
  }
}

/** Where a server keeps state: at the only contribution to a point. */
export interface StateSource<T = unknown> {
  readonly point: ExtensionPoint<T>;
  storeOf(value: T): StateStore;
  /** What keeps names that one of several servers holds. By default each server is alone. */
  holdsOf?(value: T): Holds | undefined;
}

/** Names of up to 512 bytes that one holder has at a time. */
export interface Holds {
  /** Waits until nothing else holds the name. @throws the signal's reason */
  hold(name: string, signal: AbortSignal): Promise<Exclusive>;
}

/** Says that the only contribution to a point keeps the state of plugins. */
export function keptBy<T>(point: ExtensionPoint<T>, of: Omit<StateSource<T>, 'point'>): StateSource {
  return { point, ...of } as StateSource<never> as StateSource;
}

/** Bytes of UTF-8. */
const MAX_KEY_BYTES = 512;
const MAX_VALUE_BYTES = 64 * 1024;

/** The state of one entry in a store. */
export class EntryState implements PluginState {
  readonly #entry: string;
  readonly #store: () => StateStore;
  readonly #holds: () => Holds;

  /** @param store and `holds` throw while the entry cannot use them. */
  constructor(entry: string, store: () => StateStore, holds: () => Holds) {
    this.#entry = entry;
    this.#store = store;
    this.#holds = holds;
  }

  async get(key: string): Promise<unknown> {
    this.#checkKey(key);
    const text = await this.#store().get(this.#entry, key);
    return text === undefined ? undefined : JSON.parse(text);
  }

  async put(key: string, value: unknown, options?: StateOptions): Promise<void> {
    await this.#store().change([this.#put(key, value, options)]);
  }

  async compareAndSet(key: string, expected: unknown, value: unknown, options?: StateOptions): Promise<boolean> {
    return this.#store().change([{ ...this.#put(key, value, options), expected: this.#expected(key, expected) }]);
  }

  async delete(key: string): Promise<void> {
    await this.#store().change([this.#removal(key)]);
  }

  async list(
    prefix = '',
    { after, limit }: { readonly after?: string | undefined; readonly limit?: number | undefined } = {},
  ): Promise<readonly { readonly key: string; readonly value: unknown }[]> {
    if (prefix !== '') this.#checkKey(prefix);
    const found = await this.#store().list(this.#entry, { prefix, after, limit });
    return found.map(({ key, text }) => ({ key, value: JSON.parse(text) as unknown }));
  }

  changes(
    values: Readonly<Record<string, unknown>>,
    { expected = {}, ...options }: Parameters<PluginState['changes']>[1] = {},
  ): readonly StateChange[] {
    return Object.entries(values).map(([key, value]) => {
      const change = value === undefined ? this.#removal(key) : this.#put(key, value, options);
      const isCompared = Object.hasOwn(expected, key);
      return Object.freeze(isCompared ? { ...change, expected: this.#expected(key, expected[key]) } : change);
    });
  }

  async apply(changes: readonly StateChange[]): Promise<boolean> {
    const foreign = changes.find(({ entry }) => entry !== this.#entry);
    if (foreign) throw hostError('STATE_FOREIGN', this.#entry, foreign.entry);
    return changes.length === 0 || this.#store().change(changes);
  }

  async exclusive(key: string, signal: AbortSignal): Promise<Exclusive> {
    this.#checkKey(key);
    // A name has a limit: entries and keys have them each.
    return this.#holds().hold(hash('sha256', JSON.stringify([this.#entry, key])), signal);
  }

  #put(key: string, value: unknown, { expiresIn }: StateOptions = {}): StateChange {
    this.#checkKey(key);
    const change = { entry: this.#entry, key, text: this.#textOf(key, value) };
    if (expiresIn === undefined) return change;
    if (!Number.isSafeInteger(expiresIn) || expiresIn <= 0) throw hostError('STATE_EXPIRY_INVALID', this.#entry, key, expiresIn);
    return { ...change, expiresIn };
  }

  #removal(key: string): StateChange {
    this.#checkKey(key);
    return { entry: this.#entry, key, text: undefined };
  }

  #expected(key: string, value: unknown): string | null {
    return value === undefined ? null : this.#textOf(key, value);
  }

  #checkKey(key: unknown): asserts key is string {
    const mistake = keyMistake(key);
    if (mistake !== undefined) throw hostError('STATE_KEY_INVALID', this.#entry, mistake);
  }

  #textOf(key: string, value: unknown): string {
    const text = jsonOf(value, (mistake) => hostError('STATE_VALUE_INVALID', this.#entry, key, mistake));
    const bytes = Buffer.byteLength(text);
    if (bytes > MAX_VALUE_BYTES) throw hostError('STATE_VALUE_TOO_LARGE', this.#entry, key, bytes, MAX_VALUE_BYTES);
    return text;
  }
}

function jsonOf(value: unknown, invalid: (mistake: string) => Error): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw invalid(reasonOf(error));
  }
  if (text === undefined) throw invalid(`it is ${value === undefined ? 'undefined' : `a ${typeof value}`}`);
  return text;
}

/** Why a key cannot be used, as a clause. */
function keyMistake(key: unknown): string | undefined {
  if (typeof key !== 'string') return `it is of type ${typeof key}, not a string`;
  if (key === '') return 'it is empty';
  const bytes = Buffer.byteLength(key);
  if (bytes > MAX_KEY_BYTES) return `it has ${bytes} bytes, and ${MAX_KEY_BYTES} is the limit`;
  if (!key.isWellFormed()) return 'it contains an unpaired surrogate';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: keys must not have them
  if (/[\u0000-\u001f\u007f-\u009f]/.test(key)) return 'it contains a control character';
  return undefined;
}
