/** The maximum number of names in `x-ignored-params`. */
export const MAX_IGNORED_PARAMS = 32;

/** The header with the names of ignored parameters. @param names each from `headerSafeName`. */
export function ignoredParamsHeader(names: readonly string[]): Readonly<Record<string, string>> {
  return names.length === 0 ? {} : { 'x-ignored-params': names.slice(0, MAX_IGNORED_PARAMS).join(', ') };
}

/** Returns the name if it is safe in a header; else `?`. */
export function headerSafeName(name: string): string {
  return /^[A-Za-z0-9_.-]{1,64}$/.test(name) ? name : '?';
}
