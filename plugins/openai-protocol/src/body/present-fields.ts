import { invalidRequest } from '../errors/errors.js';

type Fields = Readonly<Record<string, unknown>>;

/**
 * Unknown top-level fields of a request. They are kept and reported, so their number needs a limit
 * (S-35).
 */
const MAX_UNKNOWN_FIELDS = 128;

/**
 * Returns the fields of a request body without nulls, which count as absent.
 *
 * @param known the names that the route knows.
 * @throws ProtocolError 400 for more than 128 unknown fields.
 */
export function presentFields(body: object, known: ReadonlySet<string>): Fields {
  const present = Object.values(body).includes(null) ? withoutNulls(body) : (body as Fields);
  const unknown = Object.keys(present).filter((name) => !known.has(name)).length;
  if (unknown <= MAX_UNKNOWN_FIELDS) return present;
  throw invalidRequest(`The request has ${unknown} unknown fields: the limit is ${MAX_UNKNOWN_FIELDS}.`, {
    code: 'too_many_fields',
  });
}

function withoutNulls(body: object): Fields {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
}
