import type { Clock } from '../base/ambient.js';
import { PluginError, type PluginIdentity, reasonOf, StartError } from '../base/errors.js';
import type { Logger } from '../log/log.js';
import type { Lifecycle } from '../plugin/plugin.js';
import type { StatusBoard } from './status-board.js';
import { TimeLimitError, withinLimit } from './time-limit.js';

const DEFAULT_LIMIT = 10_000;
/** How often a slow start is mentioned in the log. */
const REMINDER = 5_000;
/** What every entry is given to stop, however little is left of the whole time. */
const LEAST_TO_STOP = 500;

/** An entry as the lifecycle sees it. */
export interface LivingEntry {
  readonly id: string;
  readonly optional: boolean;
  readonly plugin: PluginIdentity;
  readonly lifecycle: Lifecycle;
}

export interface StopOptions {
  /** Milliseconds for all entries together; without it each has its own limit. */
  readonly within?: number | undefined;
}

/** What came of a reload. */
export interface Reloaded {
  /** Who read its files again. */
  readonly entries: readonly string[];
  readonly failures: readonly PluginError[];
}

/**
 * Starts and stops what was registered, and lets it read its files again in between.
 *
 * 1. `start` goes through the entries in their order, one by one, each under its time limit.
 * 2. An `optional` entry that does not start is disabled, and the rest goes on.
 * 3. Any other that does not start ends the start: it and what had started before are stopped, in reverse.
 * 4. `stop` stops what has started, in reverse, and never stops early: what fails is told at the end. It also ends a start that is under way.
 */
export class LifecycleRunner {
  readonly #order: readonly LivingEntry[];
  readonly #status: StatusBoard;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #disable: (entry: LivingEntry) => void;
  /** Aborted when the server is told to stop. */
  readonly #told = new AbortController();
  /** Whose `start` was called, and whose `stop` was not. */
  readonly #begun: LivingEntry[] = [];
  readonly #stopFailures: PluginError[] = [];
  /** When everything should have stopped, on the clock's monotonic scale. */
  #stopBy = Number.POSITIVE_INFINITY;
  #starting: Promise<void> | undefined;
  #stopping: Promise<readonly PluginError[]> | undefined;
  /** The last reload that was asked for. */
  #reloading: Promise<unknown> = Promise.resolve();

  constructor(options: {
    readonly order: readonly LivingEntry[];
    readonly status: StatusBoard;
    readonly clock: Clock;
    readonly log: Logger;
    /** Takes away what an entry contributed. */
    readonly disable: (entry: LivingEntry) => void;
  }) {
    this.#order = options.order;
    this.#status = options.status;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#disable = options.disable;
  }

  /** @throws StartError with every failure, the roll-back's included. */
  start(): Promise<void> {
    this.#starting ??= this.#startAll();
    return this.#starting;
  }

  /** Safe without a start, and twice. Never rejects: what did not stop well is in the answer. */
  stop(options: StopOptions = {}): Promise<readonly PluginError[]> {
    this.#stopping ??= this.#stopAll(options);
    return this.#stopping;
  }

  /** Lets all that runs read its files again, one after the other in their order; never two reloads at once. Never rejects. */
  reload(): Promise<Reloaded> {
    const reloading = this.#reloading.then(() => this.#reloadAll());
    this.#reloading = reloading;
    return reloading;
  }

  async #reloadAll(): Promise<Reloaded> {
    const entries: string[] = [];
    const failures: PluginError[] = [];
    for (const { id, plugin, lifecycle } of this.#order) {
      const { startLimit = DEFAULT_LIMIT } = lifecycle;
      if (lifecycle.reload === undefined || this.#status.get(id) !== 'running') continue;
      try {
        await withinLimit((signal) => lifecycle.reload?.(signal), startLimit, this.#clock, this.#told.signal);
        entries.push(id);
      } catch (cause) {
        if (this.#told.signal.aborted) break;
        failures.push(new PluginError(id, plugin, `did not reload: ${reasonOf(cause)}`, { cause }));
      }
    }
    return { entries, failures };
  }

  async #startAll(): Promise<void> {
    const failures: PluginError[] = [];
    for (const entry of this.#order) {
      if (this.#told.signal.aborted || failures.length > 0) break;
      this.#begun.push(entry);
      const failure = await this.#startOne(entry);
      if (failure === undefined || this.#told.signal.aborted) continue;
      if (entry.optional) await this.#disableOne(failure);
      else failures.push(failure);
    }
    if (failures.length === 0 && !this.#told.signal.aborted) return this.#status.enter('running');
    this.#status.enter('stopping');
    await this.#stopBegun();
    this.#status.enter('stopped');
    throw new StartError([...failures, ...this.#stopFailures]);
  }

  async #startOne({ id, plugin, lifecycle }: LivingEntry): Promise<PluginError | undefined> {
    const begun = this.#clock.monotonic();
    const reminder = this.#clock.after(REMINDER, () => {
      this.#log.warn(`still starting: ${id}, ${Math.round((this.#clock.monotonic() - begun) / 1000)} s`);
      reminder.refresh();
    });
    this.#status.set(id, 'starting');
    try {
      const { startLimit = DEFAULT_LIMIT } = lifecycle;
      await withinLimit((signal) => lifecycle.start?.(signal), startLimit, this.#clock, this.#told.signal);
      this.#status.set(id, 'running');
      return undefined;
    } catch (cause) {
      const what =
        cause instanceof TimeLimitError
          ? `did not start within ${cause.limit / 1000} s; what it waits for may be out of reach`
          : `did not start: ${reasonOf(cause)}`;
      const failure = new PluginError(id, plugin, what, { cause });
      if (!this.#told.signal.aborted) this.#status.set(id, 'failed', failure.message);
      return failure;
    } finally {
      reminder.cancel();
    }
  }

  /** Withdraws the entry that has just failed. */
  async #disableOne(failure: PluginError): Promise<void> {
    const entry = this.#begun.pop();
    if (entry === undefined) return;
    const failedToStop = await this.#stopOne(entry);
    this.#disable(entry);
    this.#status.set(entry.id, 'disabled', failure.message);
    this.#log.warn({ err: failure.cause }, `disabled: ${failure.message}`);
    if (failedToStop !== undefined) this.#log.warn({ err: failedToStop.cause }, failedToStop.message);
  }

  async #stopAll({ within }: StopOptions): Promise<readonly PluginError[]> {
    if (within !== undefined) this.#stopBy = this.#clock.monotonic() + within;
    this.#status.enter('stopping');
    this.#told.abort(new Error('the server was told to stop'));
    await this.#starting?.catch(() => undefined); // whoever called start() is told
    await this.#stopBegun();
    this.#status.enter('stopped');
    return this.#stopFailures;
  }

  async #stopBegun(): Promise<void> {
    for (let entry = this.#begun.pop(); entry !== undefined; entry = this.#begun.pop()) {
      const failure = await this.#stopOne(entry);
      if (failure !== undefined) this.#stopFailures.push(failure);
    }
  }

  async #stopOne({ id, plugin, lifecycle }: LivingEntry): Promise<PluginError | undefined> {
    const failed = this.#status.get(id) === 'failed';
    if (!failed) this.#status.set(id, 'stopping');
    const left = Math.max(this.#stopBy - this.#clock.monotonic(), LEAST_TO_STOP);
    const limit = Math.min(lifecycle.stopLimit ?? DEFAULT_LIMIT, left);
    try {
      await withinLimit((signal) => lifecycle.stop?.(signal), limit, this.#clock);
      if (!failed) this.#status.set(id, 'stopped');
      return undefined;
    } catch (cause) {
      const what =
        cause instanceof TimeLimitError
          ? `did not stop within ${cause.limit / 1000} s and was left behind`
          : `did not stop well: ${reasonOf(cause)}`;
      const failure = new PluginError(id, plugin, what, { cause });
      if (!failed) this.#status.set(id, 'failed', failure.message);
      return failure;
    }
  }
}
