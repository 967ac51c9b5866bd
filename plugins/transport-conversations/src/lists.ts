import { invalidValue, outOfRange, wrongType, wrongValue } from '@plugboard/openai-protocol';

/** Query parameters of every list. */
export interface ListQuery {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** As sent. */
  readonly after: string | undefined;
}

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;

/** @throws ProtocolError 400 */
export function listQueryOf(query: URLSearchParams): ListQuery {
  const order = singleValue(query, 'order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') throw wrongValue('order', order, ['asc', 'desc']);
  return { limit: limitOf(singleValue(query, 'limit')), order, after: singleValue(query, 'after') };
}

/** The value of a query parameter; undefined if absent. @throws ProtocolError 400 if it is repeated. */
export function singleValue(query: URLSearchParams, name: string): string | undefined {
  const [value, ...others] = query.getAll(name);
  if (others.length > 0) throw invalidValue(name, 'it was sent more than once');
  return value;
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT;
  if (!/^-?\d{1,15}$/.test(text)) throw wrongType('limit', 'an integer', text);
  const limit = Number(text);
  if (limit < 1) throw outOfRange('limit', 'integer', 'minimum', 1, limit);
  if (limit > MAX_LIMIT) throw outOfRange('limit', 'integer', 'maximum', MAX_LIMIT, limit);
  return limit;
}

/** A page of a list, as in the reference protocol. */
export interface Page<T> {
  readonly object: 'list';
  readonly data: readonly T[];
  /** Null if the page is empty. */
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
}

/** @param found up to `limit` + 1 entries; the extra one shows that there are more. */
export function pageOf<T extends { readonly id: string }>(found: readonly T[], limit: number): Page<T> {
  const data = found.slice(0, limit);
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: found.length > limit,
  };
}
