import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { findPackageJSON } from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PROGRAM } from '../base/program.js';

const MODULES = `${sep}node_modules${sep}`;

/**
 * Finds the packages that were not installed from a registry but from a tarball or a folder, as in
 * a clone of the repository, and what these depend on. A new package must take all of them from
 * there: a registry may not have them.
 * @param folder of the new package.
 * @returns what to write into its package.json, by package: `file:../tarballs/kernel-1.0.0.tgz`.
 */
export function localPackages(names: Iterable<string>, folder: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const waiting = new Set(names);
  for (const name of waiting) {
    const source = packageSource(name);
    if (source === undefined || !existsSync(source)) continue;
    found.set(name, `file:${relative(folder, source).split(sep).join('/')}`);
    for (const dependency of dependenciesOf(name)) waiting.add(dependency);
  }
  return found;
}

/** The tarball or folder that a package was installed from; undefined if from a registry. */
export function packageSource(name: string): string | undefined {
  const path = installedFolder(name);
  if (path === undefined) return undefined;
  if (!path.includes(MODULES)) return path; // a link to a folder
  const root = path.slice(0, path.lastIndexOf(MODULES));
  const resolved = lockedSource(root, relative(root, path).split(sep).join('/'));
  if (resolved?.startsWith('file:') !== true) return undefined;
  return resolve(root, resolved.slice('file:'.length));
}

function installedFolder(name: string): string | undefined {
  const installed = [process.cwd(), PROGRAM.path].map((folder) => installedIn(name, folder)).find((path) => path !== undefined);
  return installed === undefined ? undefined : realpathSync(installed);
}

function dependenciesOf(name: string): readonly string[] {
  const manifest = join(installedFolder(name) ?? '', 'package.json');
  const { dependencies, peerDependencies } = JSON.parse(readFileSync(manifest, 'utf8')) as Record<string, object | undefined>;
  return Object.keys({ ...dependencies, ...peerDependencies });
}

function installedIn(name: string, folder: string): string | undefined {
  try {
    const file = findPackageJSON(name, pathToFileURL(join(folder, 'package.json')));
    return file === undefined ? undefined : dirname(file);
  } catch {
    return undefined;
  }
}

/** Where npm says that it has a package from. */
function lockedSource(root: string, path: string): string | undefined {
  try {
    const lock = JSON.parse(readFileSync(join(root, 'node_modules/.package-lock.json'), 'utf8')) as {
      readonly packages?: Readonly<Record<string, { readonly resolved?: string }>>;
    };
    return lock.packages?.[path]?.resolved;
  } catch {
    return undefined; // another package manager, or no installation
  }
}
