/** So many names are told at most. */
export const MOST_IGNORED = 32;

/** Nothing is dropped in silence: what a request asked for in vain is named. @param names each made by `headerSafe`. */
export function ignoredHeader(names: readonly string[]): Readonly<Record<string, string>> {
  return names.length === 0 ? {} : { 'x-ignored-params': names.slice(0, MOST_IGNORED).join(', ') };
}

/** A name that fits into a header; another one shows only that it was there. */
export function headerSafe(name: string): string {
  return /^[A-Za-z0-9_.-]{1,64}$/.test(name) ? name : '?';
}
