import { invalidRequest } from '../errors/errors.js';

type Fields = Readonly<Record<string, unknown>>;

/** Unknown top-level fields of a request: kept and reported, so they need a limit (S-35). */
const MAX_UNKNOWN_FIELDS = 128;

/**
 * Returns the fields of a request body without nulls, which count as absent. Of unknown fields that
 * are objects or lists with content, only the names are kept: they have no effect (S-53).
 *
 * @param known the names that the route knows.
 * @throws ProtocolError 400 for more than 128 unknown fields.
 */
export function presentFields(body: object, known: ReadonlySet<string>): Fields {
  const present = Object.values(body).includes(null) ? withoutNulls(body) : (body as Fields);
  const unknown = Object.keys(present).filter((name) => !known.has(name));
  if (unknown.length > MAX_UNKNOWN_FIELDS) {
    throw invalidRequest(`The request has ${unknown.length} unknown fields: the limit is ${MAX_UNKNOWN_FIELDS}.`, {
      code: 'too_many_fields',
    });
  }
  const large = unknown.filter((name) => hasContent(present[name]));
  return large.length === 0 ? present : { ...present, ...Object.fromEntries(large.map((name) => [name, undefined])) };
}

function hasContent(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return typeof value === 'object' && value !== null;
}

function withoutNulls(body: object): Fields {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}
