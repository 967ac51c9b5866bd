import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type ImportMap, resolveImports } from './import-map.js';

/** A file of the page. */
export interface PageFile {
  readonly type: string;
  readonly bytes: Uint8Array;
  readonly gzipped: Uint8Array;
  /** Strong, in quotes. */
  readonly etag: string;
}

/** The page's own files, below `page/` of this package. `index.html` is the page itself. */
const OWN = [
  'index.html',
  'style.css',
  'icon.svg',
  'api.js',
  'live.js',
  'markdown.js',
  'playground.js',
  'server.js',
  'sessions.js',
  'snippets.js',
  'turn.js',
  'turn-runner.js',
  'views/app.js',
  'views/conversation.js',
  'views/inspector.js',
  'views/markdown-text.js',
  'views/parts.js',
  'views/sidebar.js',
] as const;

interface VendorFile {
  readonly package: string;
  readonly file: string;
  /** Text to append. */
  readonly suffix?: string;
}

/**
 * Files of libraries, by their paths below the page. They are served as published, except for the
 * names in their imports.
 */
const VENDOR: Readonly<Record<string, VendorFile>> = {
  'vendor/lit-html.js': { package: 'lit-html', file: 'lit-html.js' },
  'vendor/marked.js': { package: 'marked', file: 'lib/marked.esm.js' },
  // the only minified file that the package has is a script, which sets a global variable
  'vendor/dompurify.js': { package: 'dompurify', file: 'dist/purify.min.js', suffix: 'export default globalThis.DOMPurify;\n' },
};

const IMPORTS: ImportMap = {
  'lit/html.js': 'vendor/lit-html.js',
  marked: 'vendor/marked.js',
  dompurify: 'vendor/dompurify.js',
};

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/** A comment that fills its lines, or a doc comment inside a line. */
const COMMENT = /^[ \t]*\/\*(?:(?!\*\/).)*\*\/\n|\/\*\*(?:(?!\*\/).)*\*\/ ?/gms;

/** Code that the texts of the page do not contain, with spaces in it. */
const SPACED = / (=>|===|!==|\?\?|&&|\|\||\+=) |(?<=\)) (?=\{)|(?<=\b(?:if|for)) (?=\()/g;

/** A comment up to the end of its line. One with a quote in it stays: it could be text. */
const LINE_COMMENT = /(?:^[ \t]*| )\/\/ [^'"`\n]*$/gm;

const compress = promisify(gzip);

/**
 * Reads all files of the page. The list is fixed: no request causes a look-up on disk.
 *
 * @returns the files by their paths below the page.
 * @throws Error if a file is missing, for example because a library is not installed.
 */
export async function readPageFiles(): Promise<ReadonlyMap<string, PageFile>> {
  const own = OWN.map(async (path) => [path, await pageFile(path, await readOwn(path))] as const);
  const vendor = Object.entries(VENDOR).map(
    async ([path, source]) => [path, await pageFile(path, await readVendor(source))] as const,
  );
  return new Map(await Promise.all([...own, ...vendor]));
}

/** Leaves out comments, indentation and line breaks, which no template of the page depends on. */
async function readOwn(path: string): Promise<string> {
  const text = await readFile(join(import.meta.dirname, '../page', path), 'utf8');
  const dense = text.replaceAll(COMMENT, '').replaceAll(/^[ \t]+/gm, '');
  if (path.endsWith('.css')) {
    return dense.replaceAll(/\s*([{};,>])\s*/g, '$1').replaceAll(/: |;(?=})/g, (found) => (found[0] === ':' ? ':' : ''));
  }
  if (!path.endsWith('.js')) return dense;
  return dense
    .replaceAll(LINE_COMMENT, '')
    .replaceAll(/\n{2,}/g, '\n')
    .replaceAll(/([;{,([])\n/g, '$1')
    .replaceAll(/\n([})\]])/g, '$1')
    .replaceAll(SPACED, '$1');
}

async function readVendor({ package: name, file, suffix = '' }: VendorFile): Promise<string> {
  const text = await readFile(join(packageFolder(name), file), 'utf8');
  return text.replace(/^\/\/# sourceMappingURL=[^\n]*\n?|^\/\*\*\n \* DO NOT EDIT(?:(?!\*\/).)*\*\/\n/gms, '') + suffix;
}

/** `lit-html` is a dependency of `lit`, so it is resolved from there. */
function packageFolder(name: string): string {
  const from = name === 'lit-html' ? join(packageFolder('lit'), 'package.json') : import.meta.filename;
  const manifest = findPackageJSON(name, from);
  if (manifest === undefined) throw new Error(`the package ${name} is not installed: run npm install`);
  return dirname(manifest);
}

async function pageFile(path: string, text: string): Promise<PageFile> {
  const type = TYPES[extname(path)] ?? 'application/octet-stream';
  const bytes = Buffer.from(path.endsWith('.js') ? resolveImports(text, path, IMPORTS) : text);
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 27);
  return { type, bytes, gzipped: await compress(bytes, { level: 9, memLevel: 6 }), etag: `"${hash}"` };
}
