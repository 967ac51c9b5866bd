const MOST_NAMES = 32;

/** Nothing is dropped in silence: what a request asked for in vain is named. */
export function ignoredHeader(names: readonly string[]): Readonly<Record<string, string>> {
  if (names.length === 0) return {};
  return { 'x-ignored-params': [...new Set(names.map(headerSafe))].slice(0, MOST_NAMES).join(', ') };
}

/** Fields of a body that nobody here knows; null says nothing. */
export function ignoredFields(body: unknown, known: readonly string[]): readonly string[] {
  return Object.entries(body ?? {}).flatMap(([name, value]) => (value === null || known.includes(name) ? [] : [name]));
}

/** Parameters of a query that nobody here knows; of a list, `include[]`, its name. */
export function ignoredParameters(query: URLSearchParams, known: readonly string[]): readonly string[] {
  return [...query.keys()].filter((name) => !known.includes(name)).map((name) => name.replace(/\[\w*\]$/, ''));
}

/** A name that fits into a header; another one shows only that it was there. */
function headerSafe(name: string): string {
  return /^[A-Za-z0-9_.-]{1,64}$/.test(name) ? name : '?';
}
