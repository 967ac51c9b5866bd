import type { ConfigPath } from '../base/problem.js';
import type { Reference } from '../options/variables.js';
import type { LoadedPlugin } from '../plugin/loader.js';
import type { DefinedPlugin } from '../plugin/plugin.js';

/*
 * An entry of the file is one value per phase, which never changes:
 *
 * 1. read: a ReadEntry, what the file says. Entries that `unless` or a missing variable disables
 *    say so.
 * 2. load: a LoadedEntry, with its plugin.
 * 3. configure: a ConfiguredEntry, with checked options.
 * 4. register: a Registered, with what the plugin contributes and reads (registration/register.ts).
 * 5. start to stop: a LivingEntry is what the lifecycle sees of it (lifecycle/entry-runner.ts).
 *
 * A mistake excludes an entry from the phases that depend on it, and from no other.
 */

export type Options = Readonly<Record<string, unknown>>;

export function isMap(value: unknown): value is Options {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What the file says about an entry. */
export interface ReadEntry {
  /** `greeters.hello`. */
  readonly id: string;
  /** `hello`. */
  readonly name: string;
  /** `greeters`. */
  readonly section: string;
  /** Its place in the file. */
  readonly path: ConfigPath;
  /** Where its options are: `path`, or the top level if the section has `topLevelOptions`. */
  readonly optionsPath: ConfigPath;
  /** Empty if the entry has no valid `use`, or if it has a `definition`. */
  readonly use: string;
  /** The entry has no `use`: its key names the plugin. */
  readonly isUseKey: boolean;
  /** The plugin itself, if a program gave it as `use`. */
  readonly definition?: DefinedPlugin | undefined;
  readonly optional: boolean;
  readonly unless: readonly string[];
  /** The plugin's own options, with variables replaced. */
  readonly options: Options;
  /** The section's shared options, checked. */
  readonly shared: Options;
  readonly references: readonly Reference[];
  /** Keys that an entry of the section can have beside its plugin's options. */
  readonly commonKeys: readonly string[];
  /** Why the entry is disabled. */
  readonly disabled: string | undefined;
  /** It has a mistake that was reported: it is checked further, but not registered. */
  readonly isFaulty: boolean;
}

export interface LoadedEntry extends ReadEntry {
  /** Undefined if the entry is disabled, or if the plugin cannot be used, which was reported. */
  readonly plugin: LoadedPlugin | undefined;
}

/** An entry with its checked options. */
export interface ConfiguredEntry extends LoadedEntry {
  /** With defaults filled in, frozen. Undefined if the options are invalid. */
  readonly config: Options | undefined;
  /** Digests of the files that `check` read, by absolute path; undefined for unreadable ones. */
  readonly files: ReadonlyMap<string, string | undefined>;
}
