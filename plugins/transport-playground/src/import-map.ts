import { posix } from 'node:path';

/** Bare module names and their files, as paths below the page: `marked` is `vendor/marked.js`. */
export type ImportMap = Readonly<Record<string, string>>;

const SPECIFIER = /(\bfrom\s*|\bimport\s*\(?\s*)(["'])([\w@][\w@/.-]*)\2/g;

/**
 * Replaces bare module names by relative paths, as an import map would. Browsers accept import maps
 * as inline scripts only, which the page's content security policy forbids.
 *
 * @param path of the module below the page.
 */
export function resolveImports(source: string, path: string, map: ImportMap): string {
  return source.replace(SPECIFIER, (whole, before: string, quote: string, name: string) => {
    const target = map[name];
    if (target === undefined) return whole;
    const relative = posix.relative(posix.dirname(path), target);
    return `${before}${quote}${relative.startsWith('.') ? relative : `./${relative}`}${quote}`;
  });
}
