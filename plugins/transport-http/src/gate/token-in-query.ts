import { tokenInQuery } from '../errors/refusals.js';
import type { Exchange } from '../exchange/exchange.js';

const TOKEN_PARAMETERS = new Set(['token', 'access_token', 'api_key', 'api-key', 'apikey', 'key', 'authorization', 'bearer']);

/** The beginning of issued tokens, see docs/reference/authentication.md. */
const ISSUED_TOKEN = /^svc[pae]_/;

/** Refuses a query that seems to hold a token. @throws HttpError 400 */
export function refuseTokenInQuery({ query, match }: Exchange): void {
  for (const [name, value] of new URLSearchParams(query)) {
    if (TOKEN_PARAMETERS.has(name.toLowerCase()) || ISSUED_TOKEN.test(value)) {
      throw tokenInQuery(name.slice(0, 64), match?.upgrade?.tokenProtocol);
    }
  }
}
