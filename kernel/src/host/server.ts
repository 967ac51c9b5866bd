import type { Clock } from './base/ambient.js';
import { type ConfigError, fault, type PluginError, StartError } from './base/errors.js';
import type { ConfigSource } from './configuration/config-source.js';
import type { FileContents } from './configuration/entries.js';
import type { FileLayout } from './configuration/file-layout.js';
import { type DescribedEntry, fileSchema } from './configuration/file-schema.js';
import { Problems } from './configuration/problems.js';
import { warningsOf } from './configuration/warnings.js';
import { LifecycleRunner, type ReloadResult, type StopOptions } from './lifecycle/lifecycle.js';
import type { HostView } from './lifecycle/status.js';
import type { StatusBoard } from './lifecycle/status-board.js';
import type { Logger } from './log/log.js';
import type { ServerLog } from './log/server-log.js';
import type { Budgets } from './plugin/budgets.js';
import type { Description, ExtensionPoint, Extensions } from './plugin/extension-point.js';
import type { Loader } from './plugin/loader.js';
import { ConfigFault } from './plugin/plugin.js';
import type { Registered } from './registration/register.js';
import type { Registry } from './registration/registry.js';

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
  readonly source: ConfigSource;
  readonly layout: FileLayout;
  readonly contents: FileContents;
  readonly loader: Loader;
  readonly registry: Registry;
  readonly status: StatusBoard;
  readonly budgets: Budgets;
  readonly serverLog: ServerLog;
  readonly clock: Clock;
  readonly order: readonly Registered[];
  readonly mistakes: ConfigError | undefined;
}

/**
 * A composed server: its configuration is valid, its plugins are registered, and it can be started.
 *
 * @public
 */
export class Server {
  readonly #dependencies: ServerDependencies;
  readonly #lifecycle: LifecycleRunner;

  constructor(parts: ServerDependencies) {
    const { contents, order, registry, status, clock, serverLog } = parts;
    this.#dependencies = parts;
    for (const { id, disabled } of contents.entries) {
      status.add(id, disabled === undefined ? 'registered' : 'disabled', disabled);
    }
    this.#lifecycle = new LifecycleRunner({
      order,
      status,
      clock,
      log: serverLog.log,
      disable: ({ id }) => registry.disable(id),
    });
  }

  get host(): HostView {
    return this.#dependencies.status;
  }

  /** What the entries bound, such as memory, and how much of it is in use. */
  get budgets(): Budgets {
    return this.#dependencies.budgets;
  }

  get log(): Logger {
    return this.#dependencies.serverLog.log;
  }

  /** The mistakes in the file, if it was composed with `partial`. */
  get mistakes(): ConfigError | undefined {
    return this.#dependencies.mistakes;
  }

  /** What works but should be changed: deprecated plugins and options, second copies of the kernel. One sentence each. */
  get warnings(): readonly string[] {
    const { contents, source } = this.#dependencies;
    return warningsOf(contents.entries, source);
  }

  /** The absolute path of the configuration file; undefined if the configuration is an object. */
  get file(): string | undefined {
    return this.#dependencies.source.path;
  }

  /** The plugins of all entries that are not disabled, in the order of the file. */
  get plugins(): readonly PluginInfo[] {
    const points = this.#dependencies.registry.points();
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
    return this.#dependencies.registry.points().flatMap(({ point, contributions }) =>
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

  /** The keys of a section, or of another map of the file's top level. Disabled entries are included. */
  keys(section: string): readonly string[] {
    return this.#dependencies.contents.keys.get(section) ?? [];
  }

  /** The current contributions to an extension point. */
  extensions<T>(point: ExtensionPoint<T>): Extensions<T> {
    return this.#dependencies.registry.view(point);
  }

  /**
   * Starts all entries in order.
   * @throws ConfigError if plugins found mistakes in the configuration, otherwise StartError with every failure. What had started was
   *   stopped again.
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
      if (error instanceof StartError) this.#throwMistakes(error.failures);
      throw error;
    }
  }

  /** @throws ConfigError if mistakes in the file prevented the start. */
  #throwMistakes(failures: readonly PluginError[]): void {
    const { source, contents } = this.#dependencies;
    const problems = new Problems(source);
    for (const { cause, entry, plugin } of failures) {
      if (!(cause instanceof ConfigFault)) continue;
      const place = contents.entries.find(({ id }) => id === entry)?.optionsPath ?? [];
      for (const { path, message } of cause.problems) {
        problems.add([...place, ...path], fault('OPTION_INVALID', message), 'value', plugin);
      }
    }
    problems.throwIfAny();
  }

  /** Lets every running entry read its own files again. Never rejects: the result has the failures. */
  reload(): Promise<ReloadResult> {
    this.#dependencies.serverLog.reopen();
    return this.#lifecycle.reload();
  }

  /** Stops everything that has started. Safe without a start, and twice. Never rejects: returns the failures. */
  stop(options?: StopOptions): Promise<readonly PluginError[]> {
    return this.#lifecycle.stop(options);
  }

  /**
   * Builds the JSON Schema of the whole file for the plugins that it uses, including those of disabled entries. If the plugin of a
   * disabled entry is not installed, its options are not described.
   */
  async schema(): Promise<Readonly<Record<string, unknown>>> {
    const { layout, contents, loader } = this.#dependencies;
    const described = contents.entries.map(async (entry): Promise<DescribedEntry> => {
      const { name, section, use, plugin } = entry;
      const prefix = layout.sections[section]?.prefix ?? '';
      return { name, section, use, plugin: plugin ?? (await loader.load(use, prefix).catch(() => undefined)) };
    });
    return fileSchema(layout, await Promise.all(described));
  }

  #enabled(): readonly Registered[] {
    const disabled = new Set(this.host.entries().flatMap(({ entry, status }) => (status === 'disabled' ? [entry] : [])));
    const place = new Map(this.#dependencies.contents.entries.map(({ id }, index) => [id, index]));
    return this.#dependencies.order
      .filter(({ id }) => !disabled.has(id))
      .toSorted((a, b) => (place.get(a.id) ?? 0) - (place.get(b.id) ?? 0));
  }
}
