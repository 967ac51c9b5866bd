import type { Clock } from '../base/ambient.js';
import { fault, hostError, PluginError, reasonOf, StartError } from '../base/errors.js';
import type { Logger } from '../log/log.js';
import { DEFAULT_LIMIT, EntryRunner, type LivingEntry } from './entry-runner.js';
import type { StatusBoard } from './status-board.js';
import { withinLimit } from './time-limit.js';

/** Milliseconds that every entry has at least to stop, even if the time for all of them is over. */
const LEAST_TO_STOP = 500;

/** How long a stop may take. @public */
export interface StopOptions {
  /** Milliseconds for all entries together. Without it, only each entry's own limit applies. */
  readonly within?: number | undefined;
}

/** The entries that read their own files again, and those that failed to. */
export interface FilesReloaded {
  /** The entries that read their files again. */
  readonly entries: readonly string[];
  readonly failures: readonly PluginError[];
}

/**
 * Starts, reloads and stops the registered entries.
 *
 * 1. `start` starts the entries in their order, one at a time, each under its time limit.
 * 2. An `optional` entry that does not start is disabled, and the start continues with what stands
 *    in for it (`unless`), unless it finds a mistake in the configuration (`ConfigFault`).
 * 3. If any other entry does not start, it and everything that started before are stopped in
 *    reverse.
 * 4. `stop` stops what has started, in reverse, to the end: failures are reported together. It also
 *    ends a start in progress.
 * 5. `replace` takes over entries that a reload has started, and drops those that it retired: they
 *    are stopped elsewhere.
 */
export class LifecycleRunner {
  #order: readonly LivingEntry[];
  readonly #status: StatusBoard;
  readonly #clock: Clock;
  readonly #runner: EntryRunner;
  readonly #disable: (entry: LivingEntry) => void;
  readonly #standIns: () => Promise<readonly LivingEntry[]>;
  /** Aborted when the server is asked to stop. */
  readonly #stopRequest = new AbortController();
  /** The entries whose `start` was called, but not their `stop`. */
  #started: LivingEntry[] = [];
  readonly #stopFailures: PluginError[] = [];
  /** When everything should have stopped, in the clock's monotonic time. */
  #stopBy = Number.POSITIVE_INFINITY;
  #starting: Promise<void> | undefined;
  #hasStarted = false;
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
    /** The entries to start in place of the disabled ones, if there are any. */
    readonly standIns: () => Promise<readonly LivingEntry[]>;
  }) {
    this.#order = options.order;
    this.#status = options.status;
    this.#clock = options.clock;
    this.#runner = new EntryRunner(options);
    this.#disable = options.disable;
    this.#standIns = options.standIns;
  }

  /** Aborted when the server is asked to stop. */
  get stopRequested(): AbortSignal {
    return this.#stopRequest.signal;
  }

  /** @throws StartError with every failure, the rollback's included; HostError after a stop. */
  start(): Promise<void> {
    if (this.#hasStarted && this.#stopRequest.signal.aborted) return Promise.reject(hostError('START_AFTER_STOP'));
    this.#starting ??= this.#startAll();
    return this.#starting;
  }

  /** Starts one entry, for a command. `stop` stops it. @throws StartError */
  async startOnly(id: string): Promise<void> {
    const entry = this.#order.find((one) => one.id === id);
    if (!entry) return;
    this.#started.push(entry);
    const failure = await this.#runner.start(entry, this.#stopRequest.signal);
    if (!failure) return this.#status.enter('running');
    await this.#stopStarted();
    throw new StartError([failure, ...this.#stopFailures]);
  }

  /** Resolves when a start in progress has ended, however it did. */
  async settled(): Promise<void> {
    await this.#starting?.catch(() => undefined); // start() rejects with it
  }

  /** Ends a start or a reload in progress. `stop` follows. */
  requestStop({ within }: StopOptions = {}): void {
    if (this.#stopRequest.signal.aborted) return;
    if (within !== undefined) this.#stopBy = this.#clock.monotonic() + within;
    this.#status.enter('stopping');
    this.#stopRequest.abort(hostError('STOP_REQUESTED'));
  }

  /** Safe without a start, and twice. Never rejects: returns the failures. */
  stop(options: StopOptions = {}): Promise<readonly PluginError[]> {
    this.#stopping ??= this.#stopAll(options);
    return this.#stopping;
  }

  /** Milliseconds that an entry has to stop now. */
  get timeToStop(): number {
    return Math.max(this.#stopBy - this.#clock.monotonic(), LEAST_TO_STOP);
  }

  /** Replaces the running entries by others that run, in their start order. */
  replace(order: readonly LivingEntry[]): void {
    this.#order = order;
    this.#started = order.filter(({ id }) => this.#status.get(id) === 'running');
  }

  /** Lets running entries read their files again, in order, one reload at a time. Never rejects. */
  reload(): Promise<FilesReloaded> {
    const reloading = this.#reloading.then(() => this.#reloadAll());
    this.#reloading = reloading;
    return reloading;
  }

  async #reloadAll(): Promise<FilesReloaded> {
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
    const pending = [...this.#order];
    let mistakes: unknown;
    const addStandIns = async () => {
      try {
        const standIns = await this.#standIns();
        pending.unshift(...standIns);
        this.#order = [...this.#order, ...standIns];
      } catch (error) {
        mistakes = error;
      }
    };
    await addStandIns();
    for (let entry = pending.shift(); entry !== undefined; entry = pending.shift()) {
      if (this.#stopRequest.signal.aborted || failures.length > 0 || mistakes !== undefined) break;
      this.#started.push(entry);
      const failure = await this.#runner.start(entry, this.#stopRequest.signal);
      if (failure === undefined || this.#stopRequest.signal.aborted) continue;
      if (this.#runner.canDisable(entry, failure)) {
        this.#started.pop();
        await this.#runner.disable(entry, failure, () => this.#disable(entry));
        await addStandIns();
      } else failures.push(failure);
    }
    const failed = failures.length > 0 || mistakes !== undefined;
    this.#hasStarted = !failed && !this.#stopRequest.signal.aborted;
    if (this.#hasStarted) return this.#status.enter('running');
    this.#status.enter('stopping');
    await this.#stopStarted();
    this.#status.enter('stopped');
    if (mistakes !== undefined) throw mistakes;
    throw new StartError([...failures, ...this.#stopFailures]);
  }

  async #stopAll(options: StopOptions): Promise<readonly PluginError[]> {
    this.requestStop(options);
    await this.settled();
    await this.#stopStarted();
    this.#status.enter('stopped');
    return this.#stopFailures;
  }

  async #stopStarted(): Promise<void> {
    for (let entry = this.#started.pop(); entry !== undefined; entry = this.#started.pop()) {
      const failure = await this.#runner.stop(entry, this.timeToStop);
      if (failure !== undefined) this.#stopFailures.push(failure);
    }
  }
}
