import { invalidValue, outOfRange, wrongType, wrongValue } from '../errors/request-errors.js';

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

/** The value of a query parameter, if there is one. @throws ProtocolError 400 for two. */
export function singleValue(query: URLSearchParams, name: string): string | undefined {
  const [value, ...others] = query.getAll(name);
  if (others.length > 0) throw invalidValue(name, 'it occurs more than once');
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
