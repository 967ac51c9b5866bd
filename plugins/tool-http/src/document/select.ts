import type { ConfigProblem } from '@plugboard/kernel';
import { suggestion } from '@plugboard/kernel/contracts';
import type { HttpConfig } from '../config.js';
import type { Operation } from './operations.js';

/** Names that a message lists. */
const MAX_LISTED = 20;
/** Unknown names for which a similar one is searched. */
const MAX_SUGGESTED = 10;

/** The operations that the options select, and their ids and tags that the document lacks. */
export function select(
  operations: readonly Operation[],
  { operations: ids, tags }: Pick<HttpConfig, 'operations' | 'tags'>,
): { readonly selected: readonly Operation[]; readonly problems: readonly ConfigProblem[] } {
  if (ids === undefined && tags === undefined) return { selected: operations, problems: [] };
  const names = new Set(operations.map(({ name }) => name));
  const known = new Set(operations.flatMap((operation) => operation.tags));
  const wanted = { names: new Set(ids), tags: new Set(tags) };
  const selected = operations.filter(({ name, tags }) => wanted.names.has(name) || tags.some((tag) => wanted.tags.has(tag)));
  return {
    selected,
    problems: [...missing('operations', 'operation', ids, names), ...missing('tags', 'tag', tags, known)],
  };
}

function missing(
  option: 'operations' | 'tags',
  what: string,
  wanted: readonly string[] = [],
  known: ReadonlySet<string>,
): readonly ConfigProblem[] {
  const unknown = [...wanted.entries()].filter(([, name]) => !known.has(name));
  return unknown.map(([index, name], at) => {
    const help = at < MAX_SUGGESTED ? cure(name, [...known], what) : '';
    return { path: [option, index], message: `unknown ${what} ${JSON.stringify(name)}${help}` };
  });
}

function cure(name: string, known: readonly string[], what: string): string {
  if (known.length === 0) return `; the document has no ${what}s`;
  const near = suggestion(name, known);
  if (near.startsWith(',') || known.length <= MAX_LISTED) return near;
  const listed = known.slice(0, MAX_LISTED).map((name) => JSON.stringify(name));
  return `; the document has ${known.length}: ${listed.join(', ')} …`;
}
