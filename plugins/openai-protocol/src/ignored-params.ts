/** So many names are told at most. */
export const MAX_IGNORED_PARAMS = 32;

/** Nothing is dropped in silence: what a request asked for in vain is named. @param names each made by `headerSafeName`. */
export function ignoredParamsHeader(names: readonly string[]): Readonly<Record<string, string>> {
  return names.length === 0 ? {} : { 'x-ignored-params': names.slice(0, MAX_IGNORED_PARAMS).join(', ') };
}

/** A name that fits into a header; another one shows only that it was there. */
export function headerSafeName(name: string): string {
  return /^[A-Za-z0-9_.-]{1,64}$/.test(name) ? name : '?';
}
