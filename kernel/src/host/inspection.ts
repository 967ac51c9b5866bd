import { join } from 'node:path';
import { type ConfigError, fault } from './base/errors.js';
import { formatProblem, type PluginIdentity } from './base/problem.js';
import type { HostView } from './base/status.js';
import type { Configuration } from './configuration/read-configuration.js';
import { warningsOf } from './configuration/warnings.js';
import type { Description } from './plugin/extension-point.js';
import type { Registered } from './registration/register.js';
import type { Revision } from './registration/revision.js';
import { type ConfigImage, imageOf } from './reload/changes.js';

/** The plugin of one entry. */
export interface PluginInfo extends PluginIdentity {
  /** The module that was loaded. */
  readonly path: string;
  /** The entry that uses it, for example `greeters.hello`. */
  readonly entry: string;
  readonly provides: readonly { readonly point: string; readonly name: string }[];
}

/** A description of a contribution, and where the contribution comes from. */
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

interface InspectionDependencies {
  readonly host: HostView;
  readonly mistakes: ConfigError | undefined;
  revision(): Revision;
  /** The last configuration that was read; it may have been refused. */
  lastRead(): Configuration;
}

/** What a program such as the command line shows of a server. */
export class Inspection {
  readonly #of: InspectionDependencies;

  constructor(of: InspectionDependencies) {
    this.#of = of;
  }

  /** The mistakes in the file, if the server was composed with `partial`. */
  get mistakes(): ConfigError | undefined {
    return this.#of.mistakes;
  }

  get #revision(): Revision {
    return this.#of.revision();
  }

  /** The configuration in force. */
  get configuration(): Configuration {
    return this.#revision.configuration;
  }

  /** What works but should be changed: deprecations, copies of the kernel, unread contributions. */
  get warnings(): readonly string[] {
    return [...warningsOf(this.#revision.enabled, this.configuration.source), ...unreadPoints(this.#revision)];
  }

  /** The absolute path of the configuration file; undefined if the configuration is an object. */
  get file(): string | undefined {
    return this.configuration.source.path;
  }

  /**
   * The files that the configuration consists of: the file itself, its `.env`, and files that
   * options name. Files that only a refused change names are included. Absolute; some may not
   * exist.
   */
  get files(): readonly string[] {
    const { path, folder } = this.configuration.source;
    const own = path === undefined ? [] : [path, join(folder, '.env')];
    const named = this.#read.flatMap(({ contents }) => contents.entries.flatMap(({ files }) => [...files.keys()]));
    return [...new Set([...own, ...named])];
  }

  /** The variables that secrets come from, those of a refused change included. */
  get secretVariables(): ReadonlySet<string> {
    return new Set(this.#read.flatMap(({ secretVariables }) => [...secretVariables]));
  }

  get #read(): readonly Configuration[] {
    return [this.configuration, this.#of.lastRead()];
  }

  /** Describes the configuration in force, to compare another one with it. */
  get image(): ConfigImage {
    return imageOf(this.configuration, this.#revision.enabled);
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
      contributions.flatMap(({ value, entry, name }) => {
        const owner = { plugin: packages.get(entry) ?? entry, entry, point: point.id, name };
        return (point.describe?.(value) ?? []).map(({ kind, label, text }) => ({ kind, label, text, ...owner }));
      }),
    );
  }

  /** The keys of a section or of another top-level map, disabled entries included. */
  keys(section: string): readonly string[] {
    return this.#revision.entries(section);
  }

  #enabled(): readonly Registered[] {
    const disabled = new Set(this.#of.host.entries().flatMap(({ entry, status }) => (status === 'disabled' ? [entry] : [])));
    const place = new Map(this.configuration.contents.entries.map(({ id }, index) => [id, index]));
    return this.#revision.order
      .filter(({ id }) => !disabled.has(id))
      .toSorted((a, b) => (place.get(a.id) ?? 0) - (place.get(b.id) ?? 0));
  }
}

/** Warns of contributions that no entry reads, where the owner of the point says what to add. */
function unreadPoints({ registry, order, configuration }: Revision): readonly string[] {
  const { source, contents } = configuration;
  // An entry that only looks at what stands beside its own contribution serves nothing.
  const serves = ({ reads, contributes }: Registered, key: symbol) => reads.has(key) || !contributes.has(key);
  const read = new Set(order.flatMap((entry) => [...entry.allReads].map(({ key }) => key).filter((key) => serves(entry, key))));
  return registry.points().flatMap(({ point, contributions }) => {
    const contributors = [...new Set(contributions.map(({ entry }) => entry))];
    if (point.unread === undefined || contributors.length === 0 || read.has(point.key)) return [];
    const path = contents.entries.find(({ id }) => id === contributors[0])?.path ?? [];
    const position = source.position(path, 'key');
    return formatProblem({
      ...fault('POINT_UNREAD', contributors, point.id, point.unread),
      file: source.shown,
      position,
      path: [],
    });
  });
}
