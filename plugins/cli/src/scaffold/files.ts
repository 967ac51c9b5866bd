import { existsSync, statSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { CommandError } from '@plugboard/kernel/contracts';
import { PROGRAM } from '../base/program.js';

/** Files by their paths, relative to the folder that they are written to. */
export type Files = ReadonlyMap<string, string>;

/** Folders of a template that are not part of it. */
const LEFT_OUT = new Set(['node_modules', 'dist']);

/** The folder of a template: at the root of the repository, or inside this package. */
export function templateFolder(name: string): string {
  const places = [join(PROGRAM.path, '../..', name), join(PROGRAM.path, name)];
  const found = places.find((place) => existsSync(join(place, 'gitignore')));
  if (found === undefined)
    throw new CommandError(`the folder ${name} of ${PROGRAM.name} is missing in ${PROGRAM.path}: install it again`);
  return found;
}

/** Reads all files of a folder. */
export async function readFiles(folder: string): Promise<Files> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = new Map<string, string>();
  for (const entry of entries) {
    const path = relative(folder, join(entry.parentPath, entry.name));
    const isLeftOut = path.split(sep).some((part) => LEFT_OUT.has(part)) || path.endsWith('.tsbuildinfo');
    if (entry.isFile() && !isLeftOut) files.set(path, await readFile(join(folder, path), 'utf8'));
  }
  return files;
}

/**
 * Writes files to a folder, which is created if it does not exist.
 *
 * @throws CommandError, before anything is written, if one of the files exists.
 */
export async function writeFiles(folder: string, files: Files): Promise<void> {
  assertCanBeFolder(folder);
  const existing = [...files.keys()].filter((path) => existsSync(join(folder, path)));
  if (existing.length > 0) {
    throw new CommandError(`${folder} already has ${existing.join(', ')}: choose another folder, or remove them`);
  }
  try {
    for (const [path, text] of files) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), text, { flag: 'wx' });
    }
  } catch (error) {
    throw new CommandError(`${folder} cannot be written: ${(error as Error).message}`);
  }
}

/** @throws CommandError if the folder, or one that it would be created in, is a file. */
export function assertCanBeFolder(folder: string): void {
  const existing = parentsOf(folder).find((path) => existsSync(path));
  if (existing !== undefined && !statSync(existing).isDirectory())
    throw new CommandError(`${existing} is a file, not a folder: choose another folder`);
}

/** A folder and those around it, the innermost first. */
function parentsOf(folder: string): readonly string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...parentsOf(parent)];
}
