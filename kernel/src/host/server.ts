import type { Clock } from './base/ambient.js';
import { type ConfigError, type PluginError, StartError } from './base/errors.js';
import type { ConfigFile } from './configuration/config-file.js';
import type { FileContents } from './configuration/entries.js';
import type { FileLayout } from './configuration/file-layout.js';
import { type DescribedEntry, fileSchema } from './configuration/file-schema.js';
import { Problems } from './configuration/problems.js';
import { LifecycleRunner, type Reloaded, type StopOptions } from './lifecycle/lifecycle.js';
import type { HostView } from './lifecycle/status.js';
import type { StatusBoard } from './lifecycle/status-board.js';
import type { Logger } from './log/log.js';
import type { Description, ExtensionPoint, Extensions } from './plugin/extension-point.js';
import type { Loader } from './plugin/loader.js';
import { ConfigFault } from './plugin/plugin.js';
import type { Registered } from './registration/register.js';
import type { Registry } from './registration/registry.js';

/** What is loaded for one entry. */
export interface PluginInfo {
  /** The package. */
  readonly name: string;
  readonly version: string;
  /** The module that was loaded. */
  readonly path: string;
  /** The entry that uses it, for example `models.fast`. */
  readonly entry: string;
  readonly provides: readonly { readonly point: string; readonly name: string }[];
}

/** A description of a contribution, and where the contribution comes from. */
export interface ContributionDescription extends Description {
  /** The package. */
  readonly plugin: string;
  /** The entry that contributed, for example `models.fast`. */
  readonly entry: string;
  /** The id of the extension point. */
  readonly point: string;
  /** The contribution's name. */
  readonly name: string;
}

interface ServerDependencies {
  readonly file: ConfigFile;
  readonly layout: FileLayout;
  readonly contents: FileContents;
  readonly loader: Loader;
  readonly registry: Registry;
  readonly status: StatusBoard;
  readonly log: Logger;
  readonly clock: Clock;
  readonly order: readonly Registered[];
  readonly mistakes: ConfigError | undefined;
}

/** A server made of a configuration file: checked, registered, in order, and ready to be started. */
export class Server {
  readonly #dependencies: ServerDependencies;
  readonly #lifecycle: LifecycleRunner;

  constructor(parts: ServerDependencies) {
    const { contents, order, registry, status, clock, log } = parts;
    this.#dependencies = parts;
    for (const { id, disabled } of contents.entries) {
      status.add(id, disabled === undefined ? 'registered' : 'disabled', disabled);
    }
    this.#lifecycle = new LifecycleRunner({ order, status, clock, log, disable: ({ id }) => registry.disable(id) });
  }

  get host(): HostView {
    return this.#dependencies.status;
  }

  get log(): Logger {
    return this.#dependencies.log;
  }

  /** What is wrong with the file, where it is a part of one that cannot be run. */
  get mistakes(): ConfigError | undefined {
    return this.#dependencies.mistakes;
  }

  /** The absolute path of the configuration file. */
  get file(): string {
    return this.#dependencies.file.path;
  }

  /** What is loaded, one for each entry that takes part, in the order of the file. */
  get plugins(): readonly PluginInfo[] {
    const points = this.#dependencies.registry.points();
    return this.#taking().map(({ id, plugin }) => ({
      name: plugin.name,
      version: plugin.version,
      path: plugin.path,
      entry: id,
      provides: points.flatMap(({ point, contributions }) =>
        contributions.filter(({ entry }) => entry === id).map(({ name }) => ({ point: point.id, name })),
      ),
    }));
  }

  /** What the extension points say about their contributions now. */
  descriptions(): readonly ContributionDescription[] {
    const packages = new Map(this.#taking().map(({ id, plugin }) => [id, plugin.name]));
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

  /** The keys under a section, or under another map of the file's top level; those of disabled entries included. */
  keys(section: string): readonly string[] {
    return this.#dependencies.contents.keys.get(section) ?? [];
  }

  /** What is at an extension point now. */
  extensions<T>(point: ExtensionPoint<T>): Extensions<T> {
    return this.#dependencies.registry.view(point);
  }

  /** @throws ConfigError where the start showed that the file is wrong, else StartError with every failure; what had started was stopped again. */
  async start(): Promise<void> {
    if (this.mistakes) throw this.mistakes;
    for (const { entry, status, reason } of this.host.entries()) {
      if (status === 'disabled') this.log.info(`${entry} is disabled: ${reason}`);
    }
    try {
      await this.#lifecycle.start();
    } catch (error) {
      if (error instanceof StartError) this.#blameFile(error.failures);
      throw error;
    }
  }

  /** @throws ConfigError where the file is what keeps the server from starting. */
  #blameFile(failures: readonly PluginError[]): void {
    const { file, contents } = this.#dependencies;
    const problems = new Problems(file);
    for (const { cause, entry, plugin } of failures) {
      if (!(cause instanceof ConfigFault)) continue;
      const place = contents.entries.find(({ id }) => id === entry)?.optionsPath ?? [];
      for (const { path, message } of cause.problems) problems.add([...place, ...path], message, 'value', plugin);
    }
    problems.throwIfAny();
  }

  /** Lets every entry that runs read its own files again. Never rejects: what did not go well is in the answer. */
  reload(): Promise<Reloaded> {
    return this.#lifecycle.reload();
  }

  /** Stops all that has started. Safe without a start, and twice; never rejects. What did not stop well is in the answer. */
  stop(options?: StopOptions): Promise<readonly PluginError[]> {
    return this.#lifecycle.stop(options);
  }

  /**
   * The JSON Schema of the whole file for the plugins that it uses, those of disabled entries included. A plugin that only a disabled
   * entry uses need not be there: then its options are left open.
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

  #taking(): readonly Registered[] {
    const disabled = new Set(this.host.entries().flatMap(({ entry, status }) => (status === 'disabled' ? [entry] : [])));
    const place = new Map(this.#dependencies.contents.entries.map(({ id }, index) => [id, index]));
    return this.#dependencies.order
      .filter(({ id }) => !disabled.has(id))
      .toSorted((a, b) => (place.get(a.id) ?? 0) - (place.get(b.id) ?? 0));
  }
}
