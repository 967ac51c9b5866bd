import type { Clock } from '../base/ambient.js';
import { fault, hostError, PluginError, reasonOf, StartError } from '../base/errors.js';
import type { PluginIdentity } from '../base/problem.js';
import type { Logger } from '../log/log.js';
import type { Lifecycle } from '../plugin/plugin.js';
import type { StatusBoard } from './status-board.js';
import { TimeLimitError, withinLimit } from './time-limit.js';

const DEFAULT_LIMIT = 10_000;
/** Milliseconds between log lines about a slow start. */
const REMINDER = 5_000;
/** Milliseconds that every entry has at least to stop, even if the time for all of them is over. */
const LEAST_TO_STOP = 500;

/** What the lifecycle needs to know of an entry. */
export interface LivingEntry {
  readonly id: string;
  readonly optional: boolean;
  readonly plugin: PluginIdentity;
  readonly lifecycle: Lifecycle;
}

/** How long a stop may take. @public */
export interface StopOptions {
  /** Milliseconds for all entries together. Without it, only each entry's own limit applies. */
  readonly within?: number | undefined;
}

/** The result of a reload. @public */
export interface ReloadResult {
  /** The entries that read their files again. */
  readonly entries: readonly string[];
  readonly failures: readonly PluginError[];
}

/**
 * Starts, reloads and stops the registered entries.
 *
 * 1. `start` starts the entries in their order, one at a time, each under its time limit.
 * 2. An `optional` entry that does not start is disabled, and the start continues.
 * 3. If any other entry does not start, it and everything that started before are stopped in reverse.
 * 4. `stop` stops what has started, in reverse, to the end: failures are reported together. It also ends a start in progress.
 */
export class LifecycleRunner {
  readonly #order: readonly LivingEntry[];
  readonly #status: StatusBoard;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #disable: (entry: LivingEntry) => void;
  /** Aborted when the server is asked to stop. */
  readonly #stopRequest = new AbortController();
  /** The entries whose `start` was called, but not their `stop`. */
  readonly #started: LivingEntry[] = [];
  readonly #stopFailures: PluginError[] = [];
  /** When everything should have stopped, in the clock's monotonic time. */
  #stopBy = Number.POSITIVE_INFINITY;
  #starting: Promise<void> | undefined;
  #stopping: Promise<readonly PluginError[]> | undefined;
  /** The last reload requested. */
  #reloading: Promise<unknown> = Promise.resolve();

  constructor(options: {
    readonly order: readonly LivingEntry[];
    readonly status: StatusBoard;
    readonly clock: Clock;
    readonly log: Logger;
    /** Removes the contributions of an entry. */
    readonly disable: (entry: LivingEntry) => void;
  }) {
    this.#order = options.order;
    this.#status = options.status;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#disable = options.disable;
  }

  /** @throws StartError with every failure, including those of the rollback. */
  start(): Promise<void> {
    this.#starting ??= this.#startAll();
    return this.#starting;
  }

  /** Safe without a start, and twice. Never rejects: returns the failures. */
  stop(options: StopOptions = {}): Promise<readonly PluginError[]> {
    this.#stopping ??= this.#stopAll(options);
    return this.#stopping;
  }

  /** Reloads the running entries, one at a time in their order; never two reloads at once. Never rejects. */
  reload(): Promise<ReloadResult> {
    const reloading = this.#reloading.then(() => this.#reloadAll());
    this.#reloading = reloading;
    return reloading;
  }

  async #reloadAll(): Promise<ReloadResult> {
    const entries: string[] = [];
    const failures: PluginError[] = [];
    for (const { id, plugin, lifecycle } of this.#order) {
      const { startLimit = DEFAULT_LIMIT } = lifecycle;
      if (lifecycle.reload === undefined || this.#status.get(id) !== 'running') continue;
      try {
        await withinLimit((signal) => lifecycle.reload?.(signal), startLimit, this.#clock, this.#stopRequest.signal);
        entries.push(id);
      } catch (cause) {
        if (this.#stopRequest.signal.aborted) break;
        failures.push(new PluginError(id, plugin, fault('RELOAD_FAILED', reasonOf(cause)), { cause }));
      }
    }
    return { entries, failures };
  }

  async #startAll(): Promise<void> {
    const failures: PluginError[] = [];
    for (const entry of this.#order) {
      if (this.#stopRequest.signal.aborted || failures.length > 0) break;
      this.#started.push(entry);
      const failure = await this.#startOne(entry);
      if (failure === undefined || this.#stopRequest.signal.aborted) continue;
      if (entry.optional) await this.#disableOne(failure);
      else failures.push(failure);
    }
    if (failures.length === 0 && !this.#stopRequest.signal.aborted) return this.#status.enter('running');
    this.#status.enter('stopping');
    await this.#stopStarted();
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
      await withinLimit((signal) => lifecycle.start?.(signal), startLimit, this.#clock, this.#stopRequest.signal);
      this.#status.set(id, 'running');
      return undefined;
    } catch (cause) {
      const what =
        cause instanceof TimeLimitError ? fault('START_TIMED_OUT', cause.seconds) : fault('START_FAILED', reasonOf(cause));
      const failure = new PluginError(id, plugin, what, { cause });
      if (!this.#stopRequest.signal.aborted) this.#status.set(id, 'failed', failure.message);
      return failure;
    } finally {
      reminder.cancel();
    }
  }

  /** Disables the entry that has just failed. */
  async #disableOne(failure: PluginError): Promise<void> {
    const entry = this.#started.pop();
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
    this.#stopRequest.abort(hostError('STOP_REQUESTED'));
    await this.#starting?.catch(() => undefined); // start() rejects with it
    await this.#stopStarted();
    this.#status.enter('stopped');
    return this.#stopFailures;
  }

  async #stopStarted(): Promise<void> {
    for (let entry = this.#started.pop(); entry !== undefined; entry = this.#started.pop()) {
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
      await withinLimit((signal) => lifecycle.stop?.(signal, limit), limit, this.#clock);
      if (!failed) this.#status.set(id, 'stopped');
      return undefined;
    } catch (cause) {
      const what =
        cause instanceof TimeLimitError ? fault('STOP_TIMED_OUT', cause.seconds) : fault('STOP_FAILED', reasonOf(cause));
      const failure = new PluginError(id, plugin, what, { cause });
      if (!failed) this.#status.set(id, 'failed', failure.message);
      return failure;
    }
  }
}
