import type { Clock, IdSource, Logger, PluginState } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import { FailureLog } from './failure-log.js';
import { addSums, fromStored, NO_SUMS, type StoredSums, type Sums, toStored } from './sums.js';

/** Milliseconds from an addition to its write, which has the rest of the second. */
const WRITE_AFTER = 500;
/** Milliseconds after which the store is tried again. */
const RETRY_AFTER = 1_000;
/** Milliseconds after which what other servers may have added is read again, and that may take. */
const MAX_AGE = 1_000;
/** Keys that are written at the same time, or read as one page. */
const AT_ONCE = 32;
const PAGE = 500;
/** Servers whose last write a key remembers. */
const MAX_WRITERS = 64;
/** How often another server may be faster, for one key. */
const MAX_RACES = 100;
/** Keys whose stored values are remembered. */
const MAX_KNOWN = 10_000;
/** Keys that may wait for the store. */
const MAX_WAITING = 20_000;

/** Says what the sums of a key are about. Plain data. */
export type Labels = Readonly<Record<string, unknown>>;

interface Stored {
  readonly labels?: Labels;
  readonly sums: StoredSums;
  /** By server: the number of its last write. */
  readonly writers: Readonly<Record<string, number>>;
}

/** What of a key is not stored. */
interface Pending {
  readonly labels: Labels | undefined;
  readonly expiresIn: number | undefined;
  waiting: Sums;
  /** A write that may have arrived. It is repeated as it is, until it is known to be stored. */
  sent: { readonly sums: Sums; readonly number: number } | undefined;
}

/**
 * Sums in `ctx.state`, to which several servers add.
 *
 * 1. `add` counts in memory at once, and half a second later in the store.
 * 2. A write compares and sets: what another server added meanwhile is added to.
 * 3. Each value has the number of the last write of each server. A write whose answer was lost is
 *    found in it, and not repeated.
 * 4. While the store fails, everything waits in memory, and is tried every second.
 */
export class SharedSums {
  readonly #state: PluginState;
  readonly #clock: Clock;
  readonly #writer: string;
  readonly #reads: FailureLog;
  readonly #stores: FailureLog;
  readonly #pending = new Map<string, Pending>();
  /** What was stored when it was last seen. */
  readonly #known = new Map<string, { readonly stored: Stored | undefined; readonly at: number }>();
  #writes = 0;
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(state: PluginState, clock: Clock, ids: IdSource, log: Logger) {
    this.#state = state;
    this.#clock = clock;
    this.#writer = `w${ids.base62(10)}`;
    this.#reads = new FailureLog(log, 'usage cannot be read; what is known of it counts', 'usage is read again');
    const failing = 'usage cannot be stored; it is counted in memory, and storing is tried again every second';
    this.#stores = new FailureLog(log, failing, 'usage is stored again');
  }

  /** Why the last write failed; undefined if it did not. */
  get failure(): unknown {
    return this.#stores.failure;
  }

  /** Whether so many keys wait for the store that no further ones should. */
  get isFull(): boolean {
    return this.#pending.size >= MAX_WAITING;
  }

  /** @param expiresIn milliseconds that the key is kept after its last write. */
  add(key: string, sums: Sums, { labels, expiresIn }: { labels?: Labels; expiresIn?: number | undefined } = {}): void {
    const pending = this.#pending.get(key);
    if (pending) pending.waiting = addSums(pending.waiting, sums);
    else this.#pending.set(key, { labels, expiresIn, waiting: sums, sent: undefined });
    this.#timer ??= this.#clock.after(WRITE_AFTER, () => void this.write());
  }

  /** The sums of a key: what other servers added, at most a second late. */
  async of(key: string): Promise<Sums> {
    const known = this.#known.get(key);
    if (!known || this.#clock.monotonic() - known.at >= MAX_AGE) await this.#readInTime(key);
    return this.#sumsOf(key, this.#known.get(key)?.stored);
  }

  /** Yields the sums of keys with a prefix that come after one key and before another. */
  async *between(prefix: string, from: string, to: string): AsyncGenerator<{ readonly labels: Labels; readonly sums: Sums }> {
    await this.write();
    // Where the store does not take them.
    const waiting = new Set([...this.#pending.keys()].filter((key) => key.startsWith(prefix) && key > from && key < to));
    for (let after: string | undefined = from; after !== undefined; ) {
      const page: Awaited<ReturnType<PluginState['list']>> = await this.#state.list(prefix, { after, limit: PAGE });
      const inside = page.filter(({ key }) => key < to);
      for (const { key, value } of inside) {
        waiting.delete(key);
        const stored = value as Stored;
        yield { labels: stored.labels ?? {}, sums: this.#sumsOf(key, stored) };
      }
      after = inside.length === PAGE ? inside.at(-1)?.key : undefined;
    }
    for (const key of waiting) {
      yield { labels: this.#pending.get(key)?.labels ?? {}, sums: this.#sumsOf(key, undefined) };
    }
  }

  /** Removes the keys with a prefix. */
  async remove(prefix: string): Promise<void> {
    for (const { key } of await this.#state.list(prefix)) {
      await this.#state.delete(key);
      this.#pending.delete(key);
      this.#known.delete(key);
    }
  }

  /** Writes what waits. Never rejects. */
  write(): Promise<void> {
    this.#writing = this.#writing.then(() => this.#writeAll());
    return this.#writing;
  }

  /** Writes what waits, for the last time. Safe to call before anything was added. */
  async close(): Promise<void> {
    await this.write();
    this.#timer?.cancel();
    this.#timer = undefined;
    const { size } = this.#pending;
    if (size > 0) throw new Error(`${size} sums of usage could not be stored and are lost`, { cause: this.failure });
  }

  async #writeAll(): Promise<void> {
    this.#timer?.cancel();
    this.#timer = undefined;
    const keys = [...this.#pending.keys()];
    let failure: unknown;
    for (let at = 0; at < keys.length; at += AT_ONCE) {
      const results = await Promise.allSettled(keys.slice(at, at + AT_ONCE).map((key) => this.#writeKey(key)));
      failure ??= results.find((result) => result.status === 'rejected')?.reason;
    }
    this.#stores.note(failure);
    if (this.#pending.size === 0) return;
    this.#timer ??= this.#clock.after(failure === undefined ? WRITE_AFTER : RETRY_AFTER, () => void this.write());
  }

  async #writeKey(key: string): Promise<void> {
    const pending = this.#pending.get(key);
    if (!pending) return;
    for (let race = 0; race < MAX_RACES; race++) {
      const before = await this.#read(key);
      if (pending.sent && before?.writers[this.#writer] === pending.sent.number) pending.sent = undefined;
      if (!pending.sent && pending.waiting.calls === 0) {
        this.#pending.delete(key);
        return;
      }
      if (!pending.sent) {
        pending.sent = { sums: pending.waiting, number: ++this.#writes };
        pending.waiting = NO_SUMS;
      }
      const after = this.#with(before, pending.sent, pending.labels);
      const { expiresIn } = pending;
      if (!(await this.#state.compareAndSet(key, before, after, { expiresIn }))) continue;
      pending.sent = undefined;
      this.#see(key, after);
      if (pending.waiting.calls === 0) this.#pending.delete(key);
      return;
    }
    throw new Error(`other servers were faster ${MAX_RACES} times`);
  }

  #with(before: Stored | undefined, sent: NonNullable<Pending['sent']>, labels: Labels | undefined): Stored {
    const { [this.#writer]: _, ...others } = before?.writers ?? {};
    const writers = [...Object.entries(others), [this.#writer, sent.number] as const].slice(-MAX_WRITERS);
    const sums = before ? addSums(fromStored(before.sums), sent.sums) : sent.sums;
    return { ...(labels && { labels }), sums: toStored(sums), writers: Object.fromEntries(writers) };
  }

  /** What is stored, and what is not yet in it. */
  #sumsOf(key: string, stored: Stored | undefined): Sums {
    const sums = stored ? fromStored(stored.sums) : NO_SUMS;
    const { waiting = NO_SUMS, sent } = this.#pending.get(key) ?? {};
    const isThere = sent === undefined || stored?.writers[this.#writer] === sent.number;
    return addSums(isThere ? sums : addSums(sums, sent.sums), waiting);
  }

  async #read(key: string): Promise<Stored | undefined> {
    const stored = (await this.#state.get(key)) as Stored | undefined;
    this.#see(key, stored);
    return stored;
  }

  /** Sums only grow: what has fewer calls was read before what is known. */
  #see(key: string, stored: Stored | undefined): void {
    const known = this.#known.get(key)?.stored;
    const isOlder = (known?.sums.calls ?? 0) > (stored?.sums.calls ?? 0);
    this.#known.delete(key);
    this.#known.set(key, { stored: isOlder ? known : stored, at: this.#clock.monotonic() });
    const [longest] = this.#known.keys();
    if (this.#known.size > MAX_KNOWN && longest !== undefined) this.#known.delete(longest);
  }

  /** Reads a key. If the store fails or takes longer than a second, what is known counts. */
  async #readInTime(key: string): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<string>();
    const timer = this.#clock.after(MAX_AGE, () => resolve('the store takes longer than a second'));
    const failure = await Promise.race([
      this.#read(key).then(
        () => undefined,
        (error: unknown) => error,
      ),
      late,
    ]);
    timer.cancel();
    this.#reads.note(failure);
    if (failure !== undefined) this.#see(key, this.#known.get(key)?.stored);
  }
}
