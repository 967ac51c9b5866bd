import { hash } from 'node:crypto';
import { type Dirent, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/**
 * All files below a folder by their paths from it, each with a digest of what is in it; folders and
 * what else there is by their kind.
 *
 * @param but paths that are left out.
 */
export function treeOf(folder: string, { but }: { readonly but?: RegExp } = {}): Readonly<Record<string, string>> {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true });
  const named = entries.map((entry) => ({ entry, path: join(entry.parentPath, entry.name) }));
  const wanted = named.filter(({ path }) => !but?.test(relative(folder, path)));
  return Object.fromEntries(wanted.map(({ entry, path }) => [relative(folder, path), kindOf(entry, path)]));
}

function kindOf(entry: Dirent, path: string): string {
  if (entry.isFile()) return hash('sha256', readFileSync(path));
  return entry.isDirectory() ? 'folder' : 'something else';
}
