import { join } from 'node:path';
import { type ConfigError, HostError, type PluginError, reasonOf, StartError } from './base/errors.js';
import type { HostView } from './base/status.js';
import type { FileContents } from './configuration/entries.js';
import { entryPlace } from './configuration/entry-place.js';
import { type DescribedEntry, fileSchema } from './configuration/file-schema.js';
import { Problems } from './configuration/problems.js';
import { type Configuration, type ReadOptions, readConfiguration } from './configuration/read-configuration.js';
import { reportFaults } from './configuration/report-faults.js';
import { warningsOf } from './configuration/warnings.js';
import { type FilesReloaded, LifecycleRunner, type StopOptions } from './lifecycle/lifecycle.js';
import { Retirement } from './lifecycle/retirement.js';
import type { StatusBoard } from './lifecycle/status-board.js';
import type { Logger } from './log/log.js';
import type { ServerLog } from './log/server-log.js';
import type { Budgets } from './plugin/budgets.js';
import type { Description, ExtensionPoint, Extensions } from './plugin/extension-point.js';
import type { EntryScope, Registered, RegistrationDependencies } from './registration/register.js';
import { viewOf } from './registration/registry.js';
import { Revision } from './registration/revision.js';
import { unreadPoints } from './registration/unread-points.js';
import { type ConfigChange, type ConfigImage, changesBetween, imageOf } from './reload/changes.js';
import { refuseRestart } from './reload/refuse-restart.js';
import { Staging } from './reload/staging.js';

/** The plugin of one entry. @public */
export interface PluginInfo {
  /** The package. */
  readonly name: string;
  readonly version: string;
  /** The module that was loaded. */
  readonly path: string;
  /** The entry that uses it, for example `greeters.hello`. */
  readonly entry: string;
  readonly provides: readonly { readonly point: string; readonly name: string }[];
}

/** A description of a contribution, and where the contribution comes from. @public */
export interface ContributionDescription extends Description {
  /** The package. */
  readonly plugin: string;
  /** The entry that contributed, for example `greeters.hello`. */
  readonly entry: string;
  /** The id of the extension point. */
  readonly point: string;
  /** The contribution's name. */
  readonly name: string;
}

interface ServerDependencies {
  readonly readOptions: ReadOptions;
  readonly revision: Revision;
  readonly registration: Omit<RegistrationDependencies, 'revision'>;
  readonly status: StatusBoard;
  readonly serverLog: ServerLog;
  readonly mistakes: ConfigError | undefined;
}

/** The result of a reload. @public */
export interface ReloadResult {
  /** The entries that read their own files again. */
  readonly entries: readonly string[];
  /** The entries that failed to. */
  readonly failures: readonly PluginError[];
  /** What changed in the configuration. Empty if it is the same, and if the change was refused. */
  readonly changes: readonly ConfigChange[];
  /**
   * Why the change was refused: nothing has changed then. ConfigError for mistakes in the file,
   * ReloadError if an entry did not start.
   */
  readonly refused?: HostError | undefined;
  /** From the request to the new configuration in force. */
  readonly milliseconds: number;
}

/**
 * A composed server: its configuration is valid, its plugins are registered, and it can be started.
 *
 * @public
 */
export class Server {
  /** The mistakes in the file, if it was composed with `partial`. */
  readonly mistakes: ConfigError | undefined;
  readonly #readOptions: ReadOptions;
  readonly #registration: Omit<RegistrationDependencies, 'revision'>;
  readonly #serverLog: ServerLog;
  readonly #status: StatusBoard;
  readonly #lifecycle: LifecycleRunner;
  readonly #retirement: Retirement;
  #revision: Revision;
  /** The last configuration that was read; it may have been refused. */
  #lastRead: Configuration;
  /** Earlier revisions that may still be pinned. */
  #earlier: readonly Revision[] = [];
  /** The first revision of each running entry. */
  readonly #since = new WeakMap<EntryScope, number>();
  /** The last reload requested. */
  #reloading: Promise<unknown> = Promise.resolve();

  constructor({ readOptions, revision, registration, serverLog, status, mistakes }: ServerDependencies) {
    const { clock, log } = registration;
    this.mistakes = mistakes;
    this.#readOptions = readOptions;
    this.#revision = revision;
    this.#lastRead = revision.configuration;
    this.#registration = registration;
    this.#serverLog = serverLog;
    this.#status = status;
    for (const { id, disabled } of this.#contents.entries) {
      status.add(id, disabled === undefined ? 'registered' : 'disabled', disabled);
    }
    const disable = ({ id }: { readonly id: string }) => revision.registry.disable(id);
    this.#lifecycle = new LifecycleRunner({ order: revision.order, status, clock, log, disable });
    this.#retirement = new Retirement({ clock, log });
    for (const { scope } of revision.order) this.#since.set(scope, revision.number);
  }

  get host(): HostView {
    return this.#status;
  }

  /** What the entries bound, such as memory, and how much of it is in use. */
  get budgets(): Budgets {
    return this.#registration.budgets;
  }

  get log(): Logger {
    return this.#registration.log;
  }

  /**
   * What works but should be changed: deprecated plugins and options, second copies of the kernel,
   * contributions that no entry reads. One sentence each.
   */
  get warnings(): readonly string[] {
    return [...warningsOf(this.#contents.entries, this.#revision.configuration.source), ...unreadPoints(this.#revision)];
  }

  /** The absolute path of the configuration file; undefined if the configuration is an object. */
  get file(): string | undefined {
    return this.#revision.configuration.source.path;
  }

  /**
   * The files that the configuration consists of: the file itself, its `.env`, and files that
   * options name. Files that only a refused change names are included. Absolute; some may not
   * exist.
   */
  get files(): readonly string[] {
    const { path, folder } = this.#revision.configuration.source;
    const own = path === undefined ? [] : [path, join(folder, '.env')];
    const named = [this.#revision.configuration, this.#lastRead].flatMap(({ contents }) =>
      contents.entries.flatMap(({ files }) => [...files.keys()]),
    );
    return [...new Set([...own, ...named])];
  }

  /**
   * The names of the variables that the configuration takes secrets from, those of a refused change
   * included.
   */
  get secretVariables(): ReadonlySet<string> {
    return new Set([this.#revision.configuration, this.#lastRead].flatMap(({ secretVariables }) => [...secretVariables]));
  }

  /** Describes the configuration in force, to compare another one with it. */
  get image(): ConfigImage {
    return imageOf(this.#revision.configuration);
  }

  /** The entries that have left with a reload and are not stopped yet. */
  get leaving(): readonly string[] {
    return this.#retirement.entries;
  }

  /** The plugins of all entries that are not disabled, in the order of the file. */
  get plugins(): readonly PluginInfo[] {
    const points = this.#revision.registry.points();
    return this.#enabled().map(({ id, plugin }) => ({
      name: plugin.name,
      version: plugin.version,
      path: plugin.path,
      entry: id,
      provides: points.flatMap(({ point, contributions }) =>
        contributions.filter(({ entry }) => entry === id).map(({ name }) => ({ point: point.id, name })),
      ),
    }));
  }

  /** What the extension points currently say about their contributions. */
  descriptions(): readonly ContributionDescription[] {
    const packages = new Map(this.#enabled().map(({ id, plugin }) => [id, plugin.name]));
    return this.#revision.registry.points().flatMap(({ point, contributions }) =>
      contributions.flatMap(({ value, entry, name }) =>
        (point.describe?.(value) ?? []).map(({ kind, label, text }) => ({
          kind,
          label,
          text,
          plugin: packages.get(entry) ?? entry,
          entry,
          point: point.id,
          name,
        })),
      ),
    );
  }

  /**
   * The keys of a section, or of another map of the file's top level. Disabled entries are
   * included.
   */
  keys(section: string): readonly string[] {
    return this.#revision.entries(section);
  }

  /** The current contributions to an extension point. */
  extensions<T>(point: ExtensionPoint<T>): Extensions<T> {
    return viewOf(point, () => this.#revision.registry);
  }

  /**
   * Starts all entries in order.
   * @throws ConfigError if plugins found mistakes in the configuration, otherwise StartError with
   *   every failure. What had started was stopped again.
   */
  async start(): Promise<void> {
    if (this.mistakes) throw this.mistakes;
    for (const warning of this.warnings) this.log.warn(warning);
    for (const { entry, status, reason } of this.host.entries()) {
      if (status === 'disabled') this.log.info(`${entry} is disabled: ${reason}`);
    }
    try {
      await this.#lifecycle.start();
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      this.#throwMistakes(error.failures);
      const { configuration } = this.#revision;
      throw new StartError(error.failures.map((failure) => failure.at(entryPlace(failure.entry, configuration))));
    }
  }

  /** @throws ConfigError if mistakes in the file prevented the start. */
  #throwMistakes(failures: readonly PluginError[]): void {
    const problems = new Problems(this.#revision.configuration.source);
    reportFaults(failures, this.#contents, problems);
    problems.throwIfAny();
  }

  /**
   * Lets every running entry read its own files again, then reads the configuration again and
   * applies its changes.
   *
   * 1. The next revision is built and started beside the running one. If anything about it is
   *    wrong, nothing changes.
   * 2. It takes effect at once. Running work keeps the configuration it began with.
   * 3. Entries that left are stopped when the last work that pins them has ended.
   *
   * Reloads run one after the other. Never rejects: the result says what was refused and what
   * failed.
   * @param config the new configuration, if the server was composed from an object.
   */
  reload(config?: object): Promise<ReloadResult> {
    const reloading = this.#reloading.then(() => this.#reload(config));
    this.#reloading = reloading;
    return reloading;
  }

  async #reload(config: object | undefined): Promise<ReloadResult> {
    const { clock } = this.#registration;
    const begun = clock.monotonic();
    let files: FilesReloaded = { entries: [], failures: [] };
    const result = (changes: readonly ConfigChange[], refused?: HostError): ReloadResult => ({
      ...files,
      changes,
      refused,
      milliseconds: clock.monotonic() - begun,
    });
    try {
      this.#serverLog.reopen();
      await this.#lifecycle.settled();
      files = await this.#lifecycle.reload();
      return result(this.host.phase === 'running' ? await this.#reconfigure(config) : []);
    } catch (error) {
      return result([], error instanceof HostError ? error : new HostError('NOT_RELOADED', reasonOf(error), { cause: error }));
    }
  }

  /** @throws HostError if the change is refused. */
  async #reconfigure(config: object | undefined): Promise<readonly ConfigChange[]> {
    const current = this.#revision;
    const options = config === undefined ? this.#readOptions : { ...this.#readOptions, config };
    const configuration = await readConfiguration(options, current.configuration.loader);
    this.#lastRead = configuration;
    configuration.problems.throwIfAny();
    const changes = changesBetween(this.image, imageOf(configuration));
    refuseRestart(changes, configuration);
    configuration.problems.throwIfAny();

    const next = new Revision(current.number + 1, configuration);
    const isRunning = (id: string) => this.#status.get(id) === 'running';
    const { clock, log } = this.#registration;
    const { stopRequested } = this.#lifecycle;
    const staging = new Staging(current, next, isRunning, { registration: this.#registration, clock, log, stopRequested });
    if (changes.length === 0 && staging.isSame) return changes;
    staging.register();
    await staging.start();
    this.#commit(staging, current, next);
    return changes;
  }

  #commit(staging: Staging, current: Revision, next: Revision): void {
    this.#revision = next;
    this.#status.adopt(staging.status);
    const { left, failures } = staging.commit();
    this.#lifecycle.replace(next.order);
    this.#adjustLog(next, current);
    for (const { scope } of next.order) if (!this.#since.has(scope)) this.#since.set(scope, next.number);
    for (const failure of failures) this.log.error({ err: failure.cause }, failure.message);
    this.#earlier = [...this.#earlier.filter(({ isPinned }) => isPinned), current];
    const bySince = Map.groupBy(left, ({ scope }) => this.#since.get(scope) ?? 1);
    for (const [since, entries] of bySince) {
      const revisions = this.#earlier.filter(({ number }) => number >= since);
      this.#retirement.add(entries, Promise.all(revisions.map((revision) => revision.idle())));
    }
  }

  /** What was secret stays so while work of an earlier revision may still log it. */
  #adjustLog({ configuration }: Revision, before: Revision): void {
    const revisions = [...this.#earlier.filter(({ isPinned }) => isPinned), before];
    const secrets = new Set(
      [configuration.secrets, ...revisions.map((one) => one.configuration.secrets)].flatMap((texts) => [...texts]),
    );
    const credentials = [...configuration.credentials, ...before.configuration.credentials];
    this.#serverLog.adjust({ level: configuration.contents.log.level, secrets, credentials });
  }

  /**
   * Stops everything that has started. Safe without a start, and twice. Never rejects: returns the
   * failures.
   */
  async stop(options?: StopOptions): Promise<readonly PluginError[]> {
    this.#lifecycle.requestStop(options);
    await this.#reloading;
    const failures = [...(await this.#lifecycle.stop(options))];
    failures.push(...(await this.#retirement.stopAll(() => this.#lifecycle.timeToStop)));
    await this.#serverLog.end();
    return failures;
  }

  /**
   * Builds the JSON Schema of the whole file for the plugins that it uses, including those of
   * disabled entries. If the plugin of a disabled entry is not installed, its options are not
   * described.
   */
  async schema(): Promise<Readonly<Record<string, unknown>>> {
    const { layout, contents, loader } = this.#revision.configuration;
    const described = contents.entries.map(async (entry): Promise<DescribedEntry> => {
      const { name, section, use, plugin } = entry;
      const prefix = layout.sections[section]?.prefix ?? '';
      return { name, section, use, plugin: plugin ?? (await loader.load(use, prefix).catch(() => undefined)) };
    });
    return fileSchema(layout, await Promise.all(described), {
      keys: (section) => this.keys(section),
      installed: (section) => loader.installed(layout.sections[section]?.prefix ?? ''),
    });
  }

  #enabled(): readonly Registered[] {
    const disabled = new Set(this.host.entries().flatMap(({ entry, status }) => (status === 'disabled' ? [entry] : [])));
    const place = new Map(this.#contents.entries.map(({ id }, index) => [id, index]));
    return this.#revision.order
      .filter(({ id }) => !disabled.has(id))
      .toSorted((a, b) => (place.get(a.id) ?? 0) - (place.get(b.id) ?? 0));
  }

  get #contents(): FileContents {
    return this.#revision.configuration.contents;
  }
}
