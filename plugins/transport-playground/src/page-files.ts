import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

/** A file of the page. */
export interface PageFile {
  readonly type: string;
  readonly bytes: Uint8Array;
  readonly gzipped: Uint8Array;
  /** Strong, in quotes. */
  readonly etag: string;
}

/** Where `npm run build` writes the page. */
const FOLDER = join(import.meta.dirname, '../dist/page');

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const compress = promisify(gzip);

/**
 * Reads all files of the page.
 *
 * @returns the files by name.
 * @throws Error if the page is not built.
 */
export async function readPageFiles(): Promise<ReadonlyMap<string, PageFile>> {
  const names = await readdir(FOLDER).catch((cause) => {
    throw new Error(`the page is not built: run npm run build (no files in ${FOLDER})`, { cause });
  });
  return new Map(await Promise.all(names.map(async (name) => [name, await readPageFile(name)] as const)));
}

async function readPageFile(name: string): Promise<PageFile> {
  const bytes = await readFile(join(FOLDER, name));
  const type = TYPES[extname(name)] ?? 'application/octet-stream';
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 27);
  return { type, bytes, gzipped: await compress(bytes, { level: 9, memLevel: 6 }), etag: `"${hash}"` };
}
