import { isDeepStrictEqual } from 'node:util';
import type { ConfigPath } from '../base/problem.js';
import { type ConfiguredEntry, isMap } from '../configuration/entry.js';
import type { Configuration } from '../configuration/read-configuration.js';

/** One change of the configuration: an entry, or an option of one. @public */
export interface ConfigChange {
  readonly kind: 'added' | 'changed' | 'removed';
  /** The place in the file. */
  readonly path: ConfigPath;
  /** The file whose content has changed, if it is not the configuration file. */
  readonly file?: string | undefined;
  /** Whether it cannot change while the server runs. */
  readonly needsRestart: boolean;
}

/** What decides whether an entry has changed. @experimental */
export interface EntryImage {
  readonly path: ConfigPath;
  /** The place of the options. It differs from `path` if they are keys of the top level. */
  readonly optionsPath: ConfigPath;
  /** The name and the module of the plugin. */
  readonly plugin: string;
  /** The version of the plugin's package that runs. A reload does not load another one. */
  readonly version: string;
  /** When the module that runs was last changed, in milliseconds. */
  readonly modified?: number | undefined;
  /** The options, with defaults filled in, and those that the section shares. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Digests of the files that belong to the options, by path. */
  readonly files: Readonly<Record<string, string | undefined>>;
  /** What cannot change while the server runs. */
  readonly fixed: 'entry' | 'plugin' | undefined;
  /** The options that cannot. */
  readonly fixedOptions: readonly string[];
}

/** What decides whether a configuration has changed. @experimental */
export interface ConfigImage {
  /** By the ids of the entries. Disabled entries are left out. */
  readonly entries: Readonly<Record<string, EntryImage>>;
  /** The host's own options, by section. */
  readonly own: Readonly<Record<string, unknown>>;
}

/** Describes a configuration, to compare another one with it. @param enabled its entries. */
export function imageOf({ contents, layout }: Configuration, enabled: readonly ConfiguredEntry[]): ConfigImage {
  return {
    entries: Object.fromEntries(enabled.map((entry) => [entry.id, entryImage(entry, layout.sections[entry.section]?.fixed)])),
    own: { ...Object.fromEntries(contents.literals), log: contents.log },
  };
}

function entryImage(entry: ConfiguredEntry, fixed: EntryImage['fixed']): EntryImage {
  const { path, optionsPath, plugin, config = {}, shared, files } = entry;
  return {
    path,
    optionsPath,
    plugin: `${plugin?.name} ${plugin?.path}`,
    version: plugin?.version ?? '',
    modified: plugin?.modified,
    options: { ...config, ...shared },
    files: Object.fromEntries(files),
    fixed,
    fixedOptions: plugin?.definition.fixedOptions ?? [],
  };
}

/** Compares two configurations. Entries come in the order of the file, removed ones last. */
export function changesBetween(before: ConfigImage, after: ConfigImage): ConfigChange[] {
  const ids = new Set([...Object.keys(after.entries), ...Object.keys(before.entries)]);
  const changes = [...ids].flatMap((id) => entryChanges(before.entries[id], after.entries[id]));
  const own = optionChanges(before.own, after.own, []).map((change) => ({
    ...change,
    needsRestart: change.path[0] === 'log' && change.path[1] !== 'level',
  }));
  return [...changes, ...own];
}

function entryChanges(before: EntryImage | undefined, after: EntryImage | undefined): ConfigChange[] {
  if (after === undefined) {
    return before ? [{ kind: 'removed', path: before.path, needsRestart: before.fixed === 'entry' }] : [];
  }
  const { path, optionsPath, fixed, fixedOptions } = after;
  if (before === undefined) return [{ kind: 'added', path, needsRestart: fixed === 'entry' }];
  if (before.plugin !== after.plugin) {
    return [{ kind: 'changed', path: [...path, 'use'], needsRestart: fixed !== undefined }];
  }
  const needsRestart = (place: ConfigPath) => fixed === 'entry' || fixedOptions.includes(String(place[optionsPath.length] ?? ''));
  const options = optionChanges(before.options, after.options, optionsPath).map((change) => ({
    ...change,
    needsRestart: needsRestart(change.path),
  }));
  const files = Object.keys({ ...before.files, ...after.files })
    .filter((file) => before.files[file] !== after.files[file] && file in before.files && file in after.files)
    .map((file): ConfigChange => ({ kind: 'changed', path, file, needsRestart: false }));
  return [...options, ...files];
}

/** Compares options: maps key by key, anything else as a whole. */
function optionChanges(before: unknown, after: unknown, path: ConfigPath): Pick<ConfigChange, 'kind' | 'path'>[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (before === undefined) return [{ kind: 'added', path }];
  if (after === undefined) return [{ kind: 'removed', path }];
  if (!isMap(before) || !isMap(after)) return [{ kind: 'changed', path }];
  const keys = new Set([...Object.keys(after), ...Object.keys(before)]);
  return [...keys].flatMap((key) => optionChanges(before[key], after[key], [...path, key]));
}
