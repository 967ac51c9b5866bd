import { invalidValue, outOfRange, wrongType, wrongValue } from '@plugboard/openai-protocol';

/** What every list takes. */
export interface ListQuery {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** As it was sent. */
  readonly after: string | undefined;
}

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;

/** @throws ProtocolError 400 */
export function listQueryOf(query: URLSearchParams): ListQuery {
  const order = only(query, 'order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') throw wrongValue('order', order, ['asc', 'desc']);
  return { limit: limitOf(only(query, 'limit')), order, after: only(query, 'after') };
}

/** The one value of a parameter; undefined where it is absent. @throws ProtocolError 400 where there are several. */
export function only(query: URLSearchParams, name: string): string | undefined {
  const [value, ...others] = query.getAll(name);
  if (others.length > 0) throw invalidValue(name, 'it was given more than once');
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

/** A list as the reference protocol shapes it. */
export interface Page<T> {
  readonly object: 'list';
  readonly data: readonly T[];
  /** Null where it is empty. */
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
}

/** @param found all that was asked for, and one more where there is more. */
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
