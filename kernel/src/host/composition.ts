import type { Clock } from './ambient.js';
import type { ConfigFile } from './config-file.js';
import type { FileContents } from './entries.js';
import { type ConfigError, type PluginError, StartError } from './errors.js';
import type { Description, ExtensionPoint, Extensions } from './extension-point.js';
import type { FileLayout } from './file-layout.js';
import { type DescribedEntry, fileSchema } from './file-schema.js';
import { LifecycleRunner, type Reloaded, type StopOptions } from './lifecycle.js';
import type { Loader } from './loader.js';
import type { Logger } from './log.js';
import { ConfigFault } from './plugin.js';
import { Problems } from './problems.js';
import type { Registered } from './register.js';
import type { Registry } from './registry.js';
import type { HostView } from './status.js';
import type { StatusBoard } from './status-board.js';

/** What is loaded for one entry. */
export interface PluginFact {
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

interface Parts {
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
export class Composition {
  readonly #parts: Parts;
  readonly #lifecycle: LifecycleRunner;

  constructor(parts: Parts) {
    const { contents, order, registry, status, clock, log } = parts;
    this.#parts = parts;
    for (const { id, withdrawn } of contents.entries) {
      status.add(id, withdrawn === undefined ? 'registered' : 'withdrawn', withdrawn);
    }
    this.#lifecycle = new LifecycleRunner({ order, status, clock, log, withdraw: ({ id }) => registry.withdraw(id) });
  }

  get host(): HostView {
    return this.#parts.status;
  }

  get log(): Logger {
    return this.#parts.log;
  }

  /** What is wrong with the file, where it is a part of one that cannot be run. */
  get mistakes(): ConfigError | undefined {
    return this.#parts.mistakes;
  }

  /** The absolute path of the configuration file. */
  get file(): string {
    return this.#parts.file.path;
  }

  /** What is loaded, one for each entry that takes part, in the order of the file. */
  get plugins(): readonly PluginFact[] {
    const points = this.#parts.registry.points();
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
    return this.#parts.registry.points().flatMap(({ point, contributions }) =>
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

  /** The keys under a section, or under another map of the file's top level; those of withdrawn entries included. */
  keys(section: string): readonly string[] {
    return this.#parts.contents.keys.get(section) ?? [];
  }

  /** What is at an extension point now. */
  extensions<T>(point: ExtensionPoint<T>): Extensions<T> {
    return this.#parts.registry.view(point);
  }

  /** @throws ConfigError where the start showed that the file is wrong, else StartError with every failure; what had started was stopped again. */
  async start(): Promise<void> {
    if (this.mistakes) throw this.mistakes;
    for (const { entry, status, reason } of this.host.entries()) {
      if (status === 'withdrawn') this.log.info(`${entry} is withdrawn: ${reason}`);
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
    const { file, contents } = this.#parts;
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
   * The JSON Schema of the whole file for the plugins that it uses, those of withdrawn entries included. A plugin that only a withdrawn
   * entry uses need not be there: then its options are left open.
   */
  async schema(): Promise<Readonly<Record<string, unknown>>> {
    const { layout, contents, loader } = this.#parts;
    const described = contents.entries.map(async (entry): Promise<DescribedEntry> => {
      const { name, section, use, plugin } = entry;
      const prefix = layout.sections[section]?.prefix ?? '';
      return { name, section, use, plugin: plugin ?? (await loader.load(use, prefix).catch(() => undefined)) };
    });
    return fileSchema(layout, await Promise.all(described));
  }

  #taking(): readonly Registered[] {
    const withdrawn = new Set(this.host.entries().flatMap(({ entry, status }) => (status === 'withdrawn' ? [entry] : [])));
    const place = new Map(this.#parts.contents.entries.map(({ id }, index) => [id, index]));
    return this.#parts.order
      .filter(({ id }) => !withdrawn.has(id))
      .toSorted((a, b) => (place.get(a.id) ?? 0) - (place.get(b.id) ?? 0));
  }
}
