import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../base/ambient.js';
import { fault, type HostError, PluginError, ReloadError, reasonOf } from '../base/errors.js';
import type { ConfiguredEntry } from '../configuration/entry.js';
import { enabledEntries } from '../configuration/read-configuration.js';
import { mistakesOf, placed } from '../configuration/start-failures.js';
import { DEFAULT_LIMIT, EntryRunner } from '../lifecycle/entry-runner.js';
import { StatusBoard } from '../lifecycle/status-board.js';
import { TimeLimitError, withinLimit } from '../lifecycle/time-limit.js';
import type { Logger } from '../log/log.js';
import type { Reconfiguration } from '../plugin/plugin.js';
import type { Registered } from '../registration/register.js';
import { type RegisterEntriesDependencies, registerEntries } from '../registration/register-entries.js';
import type { Revision } from '../registration/revision.js';

interface StagingDependencies {
  readonly registration: RegisterEntriesDependencies;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborted when the server is asked to stop. */
  readonly stopRequested: AbortSignal;
  /** Registers what stands in for entries that failed. @throws ConfigError */
  readonly standIns: (status: StatusBoard) => Promise<readonly Registered[]>;
}

/**
 * The next revision, built beside the current one.
 *
 * 1. Entries that are new, or changed and cannot be reconfigured, are registered. The others stay.
 * 2. `start` starts the new ones and lets those that stay prepare the change, in start order.
 *    Nothing in force changes.
 * 3. Entries of exclusive plugins that are replaced are stopped before their successors start. That
 *    comes last, with what reads from them.
 * 4. If anything fails, what has started is stopped again, and the revision is dropped. `replaced`
 *    are the entries that the caller must bring back. An optional entry that does not start fails
 *    nothing: it is disabled, and what was stopped for it stays stopped.
 * 5. `commit` applies it, for all entries at once.
 */
export class Staging {
  readonly status: StatusBoard;
  readonly #current: Revision;
  readonly #next: Revision;
  readonly #deps: StagingDependencies;
  readonly #runner: EntryRunner;
  /** The entries that stay, by their ids. */
  readonly #kept = new Map<string, Registered>();
  /** Those of them whose own configuration has changed. */
  readonly #changed = new Set<string>();
  /** The running entries that do not stay. */
  readonly #leaving: readonly Registered[];
  /** Those that were stopped for their successors. */
  readonly replaced = new Set<Registered>();
  readonly #started: Registered[] = [];
  readonly #commits: { readonly entry: Registered; run(): void }[] = [];

  /** @param running whether an entry of the current revision runs. */
  constructor(current: Revision, next: Revision, running: (id: string) => boolean, deps: StagingDependencies) {
    this.#current = current;
    this.#next = next;
    this.#deps = deps;
    const { contents } = next.configuration;
    const before = new Map(current.order.map((registered) => [registered.id, registered]));
    for (const entry of enabledEntries(contents)) {
      const registered = before.get(entry.id);
      if (registered === undefined || !running(entry.id) || registered.plugin.definition !== entry.plugin?.definition) continue;
      const changed = hasChanged(registered, entry, next);
      if (changed && registered.lifecycle.reconfigure === undefined) continue;
      this.#kept.set(entry.id, registered);
      if (changed) this.#changed.add(entry.id);
    }
    this.#leaving = current.order.filter(({ id }) => running(id) && !this.#kept.has(id));
    this.status = new StatusBoard(contents.literals);
    this.#runner = new EntryRunner({ ...deps, status: this.status });
  }

  /** Whether all entries stay as they are. */
  get isSame(): boolean {
    return this.#kept.size === this.#current.order.length && this.#changed.size === 0 && this.#isComplete;
  }

  get #isComplete(): boolean {
    return enabledEntries(this.#next.configuration.contents).every(({ id }) => this.#kept.has(id));
  }

  /** Registers the new entries. @throws ConfigError with all mistakes. */
  register(): void {
    registerEntries(this.#next, this.#deps.registration, this.#kept);
    this.#next.configuration.problems.throwIfAny();
    for (const entry of this.#next.configuration.contents.entries) {
      const reason = this.#next.reasonDisabled(entry);
      if (this.#kept.has(entry.id)) this.status.add(entry.id, 'running');
      else this.status.add(entry.id, reason === undefined ? 'registered' : 'disabled', reason);
    }
  }

  /** @throws ConfigError or ReloadError. Nothing is left running then. */
  async start(): Promise<void> {
    const refused = new AbortController();
    const signal = AbortSignal.any([this.#deps.stopRequested, refused.signal]);
    const pending = [...(await this.#standIns()), ...this.#startOrder()];
    for (let registered = pending.shift(); registered !== undefined; registered = pending.shift()) {
      if (signal.aborted) break;
      const failure = this.#kept.has(registered.id)
        ? await this.#prepare(registered, signal)
        : await this.#startNew(registered, signal);
      if (failure === undefined) {
        if (this.#next.failed.has(registered.id)) pending.unshift(...(await this.#standIns()));
        continue;
      }
      refused.abort(failure);
      throw this.#errorOf([failure, ...(await this.#stopStarted())]);
    }
    if (signal.aborted) throw new ReloadError(await this.#stopStarted());
  }

  /**
   * Applies the revision. Synchronous, so that no work sees half of it.
   * @returns the entries that have left, in start order, and what failed.
   */
  commit(): { readonly left: readonly Registered[]; readonly failures: readonly PluginError[] } {
    for (const { scope } of this.#kept.values()) scope.revision = this.#next;
    const failures: PluginError[] = [];
    for (const { entry, run } of this.#commits) {
      try {
        run();
      } catch (cause) {
        failures.push(new PluginError(entry.id, entry.plugin, fault('RECONFIGURE_BROKEN', reasonOf(cause)), { cause }));
      }
    }
    return { left: this.#leaving.filter((entry) => !this.replaced.has(entry)), failures };
  }

  /** The start order; what replaces exclusive entries, and what reads from that, comes last. */
  #startOrder(): readonly Registered[] {
    const last: Registered[] = [];
    for (const registered of this.#next.order) {
      const reads = (other: Registered) => [...other.contributes].some((point) => registered.reads.has(point));
      const replaces = !this.#kept.has(registered.id) && this.#predecessors(registered).length > 0;
      if (replaces || last.some(reads)) last.push(registered);
    }
    return [...this.#next.order.filter((registered) => !last.includes(registered)), ...last];
  }

  /** Entries that must not run beside a new one. An exclusive entry may have been renamed. */
  #predecessors({ id, plugin }: Registered): readonly Registered[] {
    const isExclusive = plugin.definition.exclusive === true;
    return this.#leaving.filter((entry) => {
      const own = entry.plugin.definition.exclusive === true;
      return entry.id === id ? own || isExclusive : own && isExclusive && entry.plugin.name === plugin.name;
    });
  }

  /** Stops the entries that must not run beside a new one. A failure is logged: it has stopped. */
  async #stopPredecessors(registered: Registered): Promise<void> {
    for (const entry of this.#predecessors(registered).toReversed()) {
      if (this.replaced.has(entry)) continue;
      this.replaced.add(entry);
      const status = new StatusBoard();
      status.add(entry.id, 'running');
      const failure = await new EntryRunner({ ...this.#deps, status }).stop(entry);
      if (failure !== undefined) this.#deps.log.error({ err: failure.cause }, failure.message);
    }
  }

  async #startNew(registered: Registered, signal: AbortSignal): Promise<PluginError | undefined> {
    await this.#stopPredecessors(registered);
    if (signal.aborted) return undefined;
    this.#started.push(registered);
    const failure = await this.#runner.start(registered, signal);
    if (failure === undefined || signal.aborted || !this.#runner.canDisable(registered, failure)) return failure;
    this.#started.pop();
    await this.#runner.disable(registered, failure, () => this.#next.fail(registered.id));
    for (const { id } of this.#predecessors(registered)) {
      this.#deps.log.warn(
        `${id} was stopped for its successor, which is optional and disabled: the file in force no longer has its earlier ` +
          'options, so it stays stopped; correct the file and reload',
      );
    }
    return undefined;
  }

  async #standIns(): Promise<readonly Registered[]> {
    try {
      return await this.#deps.standIns(this.status);
    } catch (error) {
      await this.#stopStarted();
      throw error;
    }
  }

  async #prepare(registered: Registered, signal: AbortSignal): Promise<PluginError | undefined> {
    const { id, plugin, lifecycle, entry } = registered;
    if (lifecycle.reconfigure === undefined) return undefined;
    if (!this.#changed.has(id) && !this.#readsChange(registered)) return undefined;
    const next: Reconfiguration = {
      config: entry.config,
      extensions: (point) => this.#next.registry.view(point),
      entries: (section) => this.#next.entries(section),
    };
    const { startLimit = DEFAULT_LIMIT } = lifecycle;
    try {
      const prepare = async (limited: AbortSignal) => {
        const run = await lifecycle.reconfigure?.(next, AbortSignal.any([limited, signal]));
        if (run !== undefined) this.#commits.push({ entry: registered, run });
      };
      await withinLimit(prepare, startLimit, this.#deps.clock, signal);
      return undefined;
    } catch (cause) {
      const what =
        cause instanceof TimeLimitError
          ? fault('RECONFIGURE_TIMED_OUT', cause.seconds)
          : fault('RECONFIGURE_FAILED', reasonOf(cause));
      return new PluginError(id, plugin, what, { cause });
    }
  }

  /** Whether a point that the entry reads has other contributions than before. */
  #readsChange({ allReads }: Registered): boolean {
    return [...allReads].some((point) => {
      const before = this.#current.registry.at(point);
      const after = this.#next.registry.at(point);
      return before.length !== after.length || before.some((contribution, index) => contribution !== after[index]);
    });
  }

  async #stopStarted(): Promise<PluginError[]> {
    const failures: PluginError[] = [];
    for (const registered of this.#started.toReversed()) {
      const failure = await this.#runner.stop(registered);
      if (failure !== undefined) failures.push(failure);
    }
    return failures;
  }

  /** Mistakes in the file are reported with their positions. */
  #errorOf(failures: readonly PluginError[]): HostError {
    const { configuration } = this.#next;
    return mistakesOf(failures, configuration) ?? new ReloadError(placed(failures, configuration));
  }
}

/** Whether the entry's options, its files or the section keys that it reads have changed. */
function hasChanged({ entry: before, keysRead }: Registered, after: ConfiguredEntry, next: Revision): boolean {
  return (
    !isDeepStrictEqual(before.config, after.config) ||
    !isDeepStrictEqual(before.files, after.files) ||
    [...keysRead].some(([section, keys]) => !isDeepStrictEqual(keys, next.entries(section)))
  );
}
