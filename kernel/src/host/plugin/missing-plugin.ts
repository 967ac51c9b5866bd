import { type Dirent, readdirSync } from 'node:fs';
import { basename, dirname, join, parse } from 'node:path';
import { nearest } from '../base/nearest.js';

/** What is known about an entry besides its `use`. */
export interface UseHints {
  /** The entry has no `use`: its own key names the plugin. */
  readonly isKey?: boolean;
  /** The plugin that entries with such options usually have. */
  readonly usual?: string | undefined;
  /** The path of another plugin that needs it: its dependencies are searched last. */
  readonly neededBy?: string | undefined;
}

/** The endings of modules that Node.js runs. */
const MODULE = /\.[cm]?[jt]s$/;

/** The plugin that a `use` most likely means: a module beside the file, or an installed one. */
export function similarPlugin(use: string, folder: string, installed: readonly string[]): string | undefined {
  const path = join(folder, use);
  const wanted = basename(path);
  const found = entriesOf(dirname(path)).find(({ name }) => MODULE.test(name) && [name, parse(name).name].includes(wanted));
  return found === undefined ? nearest(use, installed) : `./${join(dirname(use), found.name)}`;
}

/** The short names of the installed plugins with a prefix: `x` for `@plugboard/<prefix>-x`. */
export function installedPlugins(folders: readonly string[], prefix: string): readonly string[] {
  const pattern = new RegExp(`^(?:@plugboard/|plugboard-)${prefix}-(.+)$`);
  const names = folders.flatMap(packagesAround).flatMap((name) => pattern.exec(name)?.[1] ?? []);
  return [...new Set(names)].toSorted();
}

function packagesAround(folder: string): readonly string[] {
  const modules = join(folder, 'node_modules');
  const own = [
    ...entriesOf(join(modules, '@plugboard')).map(({ name }) => `@plugboard/${name}`),
    ...entriesOf(modules).map(({ name }) => name),
  ];
  const parent = dirname(folder);
  return parent === folder ? own : [...own, ...packagesAround(parent)];
}

/** Finds the name of the module or folder beside a missing one that is most similar to its name. */
export function similarFile(path: string): string | undefined {
  const entries = entriesOf(dirname(path)).filter((entry) => entry.isDirectory() || MODULE.test(entry.name));
  return nearest(
    basename(path),
    entries.map(({ name }) => name),
  );
}

/** The entries of a folder, or none if it cannot be read. */
function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
