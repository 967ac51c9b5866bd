import { integerOutOfRange, invalid, wrongType, wrongValue } from './faults.js';

export interface ListQuery {
  readonly limit: number;
  readonly order: 'asc' | 'desc';
  /** As it was sent. */
  readonly after: string | undefined;
}

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;

/** What every list takes. @throws HttpError 400 */
export function listQueryOf(query: URLSearchParams): ListQuery {
  const order = only(query, 'order') ?? 'desc';
  if (order !== 'asc' && order !== 'desc') throw wrongValue('order', order, ['asc', 'desc']);
  return { limit: limitOf(only(query, 'limit')), order, after: only(query, 'after') };
}

/** The one value of a parameter; undefined where it is absent. @throws HttpError 400 where there are several. */
export function only(query: URLSearchParams, name: string): string | undefined {
  const [value, ...others] = query.getAll(name);
  if (others.length > 0) throw invalid(name, 'it was given more than once');
  return value;
}

function limitOf(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT;
  if (!/^-?\d{1,15}$/.test(text)) throw wrongType('limit', 'an integer', text);
  const limit = Number(text);
  if (limit < 1) throw integerOutOfRange('limit', 'minimum', 1, limit);
  if (limit > MAX_LIMIT) throw integerOutOfRange('limit', 'maximum', MAX_LIMIT, limit);
  return limit;
}
