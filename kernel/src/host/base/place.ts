import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KERNEL } from './kernel-package.js';

/** A frame of a stack trace, or the first line of a SyntaxError: a file with its line. */
const FRAME = /(?:^|[\s(])(file:\/\/[^\s()]+?|(?:\/|[A-Za-z]:\\)[^()\n]*?):(\d+)(?::(\d+))?\)?$/;

const ownFolders = [KERNEL.path];

/** Makes `placeOf` ignore the files of the program that runs the kernel. */
export function ignoreFilesIn(folder: string): void {
  ownFolders.push(folder);
}

/**
 * Finds where a thrown error comes from: the innermost file of its stack trace that is neither part
 * of Node.js nor of this package, as `/path/to/greeter.js:12:5`. Undefined if there is none.
 */
export function placeOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return undefined;
  for (const line of error.stack.split('\n')) {
    if (line.length > 1_000) continue; // the expression takes time with the square of it
    const [, file, row, column] = FRAME.exec(line.trim()) ?? [];
    if (file === undefined) continue;
    const path = file.startsWith('file:') ? fileURLToPath(file) : file;
    if (isOwn(path)) continue;
    return [path, row, column].filter((part) => part !== undefined).join(':');
  }
  return undefined;
}

function isOwn(path: string): boolean {
  return ownFolders.some((folder) => ['dist', 'src', 'bin'].some((part) => path.startsWith(join(folder, part, '/'))));
}
