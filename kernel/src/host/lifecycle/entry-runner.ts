import type { Clock } from '../base/ambient.js';
import { fault, PluginError, reasonOf } from '../base/errors.js';
import { beginMethod } from '../base/plugin-calls.js';
import type { PluginIdentity } from '../base/problem.js';
import type { Logger } from '../log/log.js';
import { ConfigFault, type Lifecycle } from '../plugin/plugin.js';
import type { StatusBoard } from './status-board.js';
import { TimeLimitError, withinLimit } from './time-limit.js';

/** Milliseconds for each phase of an entry. */
export const DEFAULT_LIMIT = 10_000;
/** Milliseconds after the limit of a stop, in which the entry can still say what it cut. */
const STOP_GRACE = 1_000;
/** Milliseconds between log lines about a slow start. */
const REMINDER = 5_000;

/** What the lifecycle needs to know of an entry. */
export interface LivingEntry {
  readonly id: string;
  readonly optional: boolean;
  readonly plugin: PluginIdentity;
  readonly lifecycle: Lifecycle;
}

/** Starts and stops single entries, each under its time limit, and keeps their status. */
export class EntryRunner {
  readonly #status: StatusBoard;
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor({ status, clock, log }: { readonly status: StatusBoard; readonly clock: Clock; readonly log: Logger }) {
    this.#status = status;
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * Starts an entry. The caller stops it if that fails.
   * @param signal aborts the start. The entry is not marked as failed then.
   */
  async start({ id, plugin, lifecycle }: LivingEntry, signal: AbortSignal): Promise<PluginError | undefined> {
    const begun = this.#clock.monotonic();
    const reminder = this.#clock.after(REMINDER, () => {
      this.#log.warn(`still starting: ${id}, ${Math.round((this.#clock.monotonic() - begun) / 1000)} s`);
      reminder.refresh();
    });
    this.#status.set(id, 'starting');
    const ended = beginMethod('start', id, plugin);
    try {
      const { startLimit = DEFAULT_LIMIT } = lifecycle;
      await withinLimit((limited) => lifecycle.start?.(limited), startLimit, this.#clock, signal);
      this.#status.set(id, 'running');
      return undefined;
    } catch (cause) {
      const what =
        cause instanceof TimeLimitError ? fault('START_TIMED_OUT', cause.seconds) : fault('START_FAILED', reasonOf(cause));
      const failure = new PluginError(id, plugin, what, { cause });
      if (!signal.aborted) this.#status.set(id, 'failed', failure.message);
      return failure;
    } finally {
      ended();
      reminder.cancel();
    }
  }

  /** Whether the server can run without an entry: not with a mistake in the file. */
  canDisable({ optional }: LivingEntry, { cause }: PluginError): boolean {
    return optional && !(cause instanceof ConfigFault);
  }

  /** Disables an optional entry that did not start. @param withdraw removes its contributions. */
  async disable(entry: LivingEntry, failure: PluginError, withdraw: () => void): Promise<void> {
    const failedToStop = await this.stop(entry);
    withdraw();
    this.#status.set(entry.id, 'disabled', failure.message);
    this.#log.warn({ err: failure.cause }, `disabled: ${failure.message}`);
    if (failedToStop !== undefined) this.#log.warn({ err: failedToStop.cause }, failedToStop.message);
  }

  /**
   * Stops an entry. Never rejects.
   *
   * @param most milliseconds, if that is less than the entry's own limit.
   */
  async stop({ id, plugin, lifecycle }: LivingEntry, most = Number.POSITIVE_INFINITY): Promise<PluginError | undefined> {
    const failed = this.#status.get(id) === 'failed';
    if (!failed) this.#status.set(id, 'stopping');
    const ended = beginMethod('stop', id, plugin);
    const grace = Math.min(STOP_GRACE, most / 2);
    const limit = Math.min(lifecycle.stopLimit ?? DEFAULT_LIMIT, most - grace);
    try {
      await withinLimit((signal) => lifecycle.stop?.(signal, limit), limit, this.#clock, undefined, grace);
      if (!failed) this.#status.set(id, 'stopped');
      return undefined;
    } catch (cause) {
      const what =
        cause instanceof TimeLimitError ? fault('STOP_TIMED_OUT', cause.seconds) : fault('STOP_FAILED', reasonOf(cause));
      const failure = new PluginError(id, plugin, what, { cause });
      if (!failed) this.#status.set(id, 'failed', failure.message);
      return failure;
    } finally {
      ended();
    }
  }
}
