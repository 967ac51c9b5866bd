import { posix } from 'node:path';

/** The file that each bare module name stands for, by its path below the page: `lit-html` is `vendor/lit-html/lit-html.js`. */
export type ImportMap = Readonly<Record<string, string>>;

const SPECIFIER = /(\bfrom\s*|\bimport\s*\(?\s*)(["'])([\w@][\w@/.-]*)\2/g;

/**
 * Replaces bare module names by relative paths, as an import map of the page would. Browsers take import maps only as an inline script, and
 * the page's content security policy allows none.
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
