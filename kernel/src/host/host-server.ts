import { ConfigError, fault, HostError, type PluginError, ReloadError, reasonOf, StartError } from './base/errors.js';
import type { EntryReport, HostView } from './base/status.js';
import { withoutSecrets } from './base/without-secrets.js';
import type { FileContents } from './configuration/entries.js';
import { type Configuration, enabledEntries, type ReadOptions, readConfiguration } from './configuration/read-configuration.js';
import { mistakesOf, placed } from './configuration/start-failures.js';
import { updatedPlugins } from './configuration/warnings.js';
import { Inspection } from './inspection.js';
import { type FilesReloaded, LifecycleRunner, type StopOptions } from './lifecycle/lifecycle.js';
import { Retirement } from './lifecycle/retirement.js';
import type { EntryDetails, StatusBoard } from './lifecycle/status-board.js';
import type { Logger } from './log/log.js';
import type { ServerLog } from './log/server-log.js';
import type { Budgets } from './plugin/budgets.js';
import type { ExtensionPoint, Extensions } from './plugin/extension-point.js';
import type { EntryScope, Registered } from './registration/register.js';
import type { RegisterEntriesDependencies } from './registration/register-entries.js';
import { viewOf } from './registration/registry.js';
import { Revision } from './registration/revision.js';
import { registerStandIns } from './registration/stand-ins.js';
import { type ConfigChange, changesBetween, imageOf } from './reload/changes.js';
import { Staging } from './reload/staging.js';
import type { ReloadResult, Server } from './server.js';

interface ServerDependencies {
  readonly readOptions: ReadOptions;
  readonly revision: Revision;
  readonly registration: RegisterEntriesDependencies;
  readonly status: StatusBoard;
  readonly serverLog: ServerLog;
  readonly mistakes: ConfigError | undefined;
}

/** The server that `compose` returns. */
export class HostServer implements Server {
  /** What programs show of the server. */
  readonly inspection: Inspection;
  readonly #readOptions: ReadOptions;
  readonly #registration: RegisterEntriesDependencies;
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
    this.#readOptions = readOptions;
    this.#revision = revision;
    this.#lastRead = revision.configuration;
    this.#registration = registration;
    this.#serverLog = serverLog;
    this.#status = status;
    for (const entry of this.#contents.entries) {
      const reason = revision.reasonDisabled(entry);
      status.add(entry.id, reason === undefined ? 'registered' : 'disabled', reason);
    }
    status.describeWith(() => this.#details(), serverLog.redact);
    this.inspection = new Inspection({
      host: status,
      mistakes,
      revision: () => this.#revision,
      lastRead: () => this.#lastRead,
    });
    this.#lifecycle = new LifecycleRunner({
      order: revision.order,
      status,
      clock,
      log,
      disable: ({ id }) => revision.fail(id),
      standIns: () => this.#standIns(revision, status),
    });
    this.#retirement = new Retirement({ clock, log });
    for (const { scope } of revision.order) this.#since.set(scope, revision.number);
  }

  get host(): HostView {
    return this.#status;
  }

  get budgets(): Budgets {
    return this.#registration.budgets;
  }

  get log(): Logger {
    return this.#registration.log;
  }

  get leaving(): readonly string[] {
    return this.#retirement.entries;
  }

  extensions<T>(point: ExtensionPoint<T>): Extensions<T> {
    return viewOf(point, () => this.#revision.registry);
  }

  /** Registers what stands in for entries that failed. Its secrets are secret from now on. */
  async #standIns(revision: Revision, status: StatusBoard): Promise<readonly Registered[]> {
    const registered = await registerStandIns(revision, status, this.#registration);
    if (registered.length > 0) this.#adjustLog(this.#revision, revision);
    return registered;
  }

  async start(): Promise<void> {
    if (this.inspection.mistakes) throw this.inspection.mistakes;
    for (const warning of this.inspection.warnings) this.log.warn(warning);
    this.#logDisabled();
    try {
      await this.#lifecycle.start();
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      const { configuration } = this.#revision;
      const mistakes = mistakesOf(error.failures, configuration);
      throw mistakes?.redacted(this.#serverLog.redact) ?? new StartError(this.#redacted(placed(error.failures, configuration)));
    }
  }

  /**
   * Starts only what keeps the state of plugins, for a command. `stop` follows.
   * @throws ConfigError if nothing keeps it because of a mistake in the file; StartError.
   */
  async startState(): Promise<void> {
    const { state } = this.#registration;
    const [keeper] = state ? this.#revision.registry.visible(state.point) : [];
    if (!keeper && this.inspection.mistakes) throw this.inspection.mistakes;
    if (!keeper) return; // its use says so
    try {
      await this.#lifecycle.startOnly(keeper.entry);
    } catch (error) {
      throw error instanceof StartError ? new StartError(this.#redacted(error.failures)) : error;
    }
  }

  /** Logs one line for all disabled entries, but one for each that lacks its package. */
  #logDisabled(): void {
    const lacksPackage = ({ reason = '' }: EntryReport) => reason.startsWith('the package ');
    const all = this.host.entries().filter(({ status }) => status === 'disabled');
    for (const { entry, reason } of all.filter(lacksPackage)) this.log.warn(`${entry} is disabled: ${reason}`);
    const disabled = all.filter((entry) => !lacksPackage(entry));
    const [first, ...others] = disabled;
    if (first === undefined) return;
    if (others.length === 0) {
      this.log.info(`${first.entry} is disabled: ${first.reason}`);
      return;
    }
    const causes = disabled.map(({ entry, reason = '' }) => ({
      entry,
      reason,
      variable: /^the variable (\S+) is /.exec(reason)?.[1],
    }));
    const isUnset = causes.every(({ variable }) => variable !== undefined);
    const names = causes.map(({ entry, reason, variable }) => `${entry} (${isUnset ? variable : reason})`).join(', ');
    const why = isUnset ? ', because their variables have no value; set one, for example in .env, to use its entry' : '';
    this.log.info(`${disabled.length} entries are disabled${why}: ${names}`);
  }

  reload(config?: object): Promise<ReloadResult> {
    const reloading = this.#reloading.then(() => this.#reload(config));
    this.#reloading = reloading;
    return reloading;
  }

  async #reload(config: object | undefined): Promise<ReloadResult> {
    const { clock } = this.#registration;
    const begun = clock.monotonic();
    const { contents, source } = this.#revision.configuration;
    for (const updated of updatedPlugins(contents.entries, source)) this.log.warn(updated);
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
      const { entries, failures } = await this.#lifecycle.reload();
      files = { entries, failures: this.#redacted(failures) };
      return result(this.host.phase === 'running' ? await this.#reconfigure(config) : []);
    } catch (error) {
      return result([], this.#refusal(error));
    }
  }

  /** @throws HostError if the change is refused. */
  async #reconfigure(config: object | undefined): Promise<readonly ConfigChange[]> {
    const current = this.#revision;
    const options = config === undefined ? this.#readOptions : { ...this.#readOptions, config };
    const configuration = await readConfiguration(options, current.configuration.loader);
    this.#lastRead = configuration;
    this.#adjustLog(current, { configuration }); // why it is refused may quote its secrets
    configuration.problems.throwIfAny();
    const changes = changesBetween(this.inspection.image, imageOf(configuration, enabledEntries(configuration.contents)));
    for (const { path, needsRestart } of changes) {
      if (needsRestart) configuration.problems.add(path, fault('RESTART_NEEDED'), 'value');
    }
    configuration.problems.throwIfAny();

    const next = new Revision(current.number + 1, configuration);
    const staging = this.#stage(current, next);
    if (changes.length === 0 && staging.isSame) return changes;
    staging.register();
    try {
      await staging.start();
    } catch (error) {
      await this.#bringBack(staging.replaced, current);
      throw error;
    }
    this.#commit(staging, current, next);
    return changes;
  }

  /** @param stopped entries of the current revision that run no longer. */
  #stage(current: Revision, next: Revision, stopped: ReadonlySet<Registered> = new Set()): Staging {
    const ids = new Set([...stopped].map(({ id }) => id));
    const isRunning = (id: string) => this.#status.get(id) === 'running' && !ids.has(id);
    const { clock, log } = this.#registration;
    const { stopRequested } = this.#lifecycle;
    const standIns = (status: StatusBoard) => this.#standIns(next, status);
    return new Staging(current, next, isRunning, { registration: this.#registration, clock, log, stopRequested, standIns });
  }

  /**
   * Registers and starts the entries again that were stopped for a change that is refused. If that
   * fails too, they stay stopped, and everything else runs. Never rejects.
   */
  async #bringBack(stopped: ReadonlySet<Registered>, current: Revision): Promise<void> {
    if (stopped.size === 0) return;
    const ids = [...stopped].map(({ id }) => id);
    const again = new Revision(current.number + 1, current.configuration);
    try {
      const staging = this.#stage(current, again, stopped);
      staging.register();
      await staging.start();
      this.#commit(staging, current, again);
      this.log.warn(`the change is refused: ${ids.join(', ')} was stopped for it, and runs again as before`);
    } catch (error) {
      const isStopping = this.#lifecycle.stopRequested.aborted;
      for (const id of ids) {
        this.#status.set(id, 'stopping');
        this.#status.set(id, isStopping ? 'stopped' : 'failed', isStopping ? undefined : reasonOf(error));
      }
      this.#lifecycle.replace(current.order);
      if (isStopping) return;
      this.log.error({ err: error }, `${ids.join(', ')} was stopped for a change that is refused, and did not start again`);
    }
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
    const exclusive = left.filter(({ plugin }) => plugin.definition.exclusive);
    if (exclusive.length > 0) this.#retirement.add(exclusive, Promise.resolve());
    const shared = left.filter((entry) => !exclusive.includes(entry));
    const bySince = Map.groupBy(shared, ({ scope }) => this.#since.get(scope) ?? 1);
    for (const [since, entries] of bySince) {
      const revisions = this.#earlier.filter(({ number }) => number >= since);
      this.#retirement.add(entries, Promise.all(revisions.map((revision) => revision.idle())));
    }
  }

  /** What was secret stays so while work of an earlier revision may still log it. */
  #adjustLog({ configuration }: Revision, before: Pick<Revision, 'configuration'>): void {
    const revisions = [...this.#earlier.filter(({ isPinned }) => isPinned), before];
    const secrets = new Set(
      [configuration.secrets, ...revisions.map((one) => one.configuration.secrets)].flatMap((texts) => [...texts]),
    );
    const credentials = [...configuration.credentials, ...before.configuration.credentials];
    this.#serverLog.adjust({ level: configuration.contents.log.level, secrets, credentials });
  }

  /** Why a reload is refused. */
  #refusal(error: unknown): HostError {
    const { redact } = this.#serverLog;
    if (error instanceof ConfigError) return error.redacted(redact);
    if (error instanceof ReloadError) return new ReloadError(this.#redacted(error.failures));
    if (error instanceof HostError) return error;
    return new HostError('NOT_RELOADED', redact(reasonOf(error)), { cause: withoutSecrets(error, redact) });
  }

  /** What the program that embeds the server is told of failures: no secrets, as in the log. */
  #redacted(failures: readonly PluginError[]): readonly PluginError[] {
    return failures.map((failure) => failure.redacted(this.#serverLog.redact));
  }

  async stop(options?: StopOptions): Promise<readonly PluginError[]> {
    this.#lifecycle.requestStop(options);
    await this.#reloading;
    const failures = [...(await this.#lifecycle.stop(options))];
    failures.push(...(await this.#retirement.stopAll(() => this.#lifecycle.timeToStop)));
    await this.#serverLog.end();
    return this.#redacted(failures);
  }

  /** What the file and the plugins say about the entries. */
  #details(): ReadonlyMap<string, EntryDetails> {
    const { order, configuration } = this.#revision;
    const lifecycles = new Map(order.map(({ id, lifecycle }) => [id, lifecycle]));
    return new Map(
      configuration.contents.entries.map(({ id, optional, plugin }) => [
        id,
        { optional, plugin: plugin?.name, version: plugin?.version, lifecycle: lifecycles.get(id) },
      ]),
    );
  }

  get #contents(): FileContents {
    return this.#revision.configuration.contents;
  }
}
