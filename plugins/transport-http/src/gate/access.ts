import type { Principal } from '@plugboard/kernel';
import { missingScope } from '@plugboard/kernel/contracts';
import { outOfScope } from '../errors/refusals.js';
import type { Exchange } from '../exchange/exchange.js';

/** Every path under `/v1`, also an unknown one, requires a credential: a 404 reveals nothing. */
export function requiresCredential({ match, path }: Exchange): boolean {
  return (match !== undefined && typeof match.route.access !== 'string') || path === '/v1' || path.startsWith('/v1/');
}

/** The only place that checks scopes, so that no route can omit it. @throws HttpError 403 */
export function checkScopes(exchange: Exchange, principal: Principal): void {
  const access = exchange.match?.route.access ?? 'public';
  const missing = typeof access === 'string' ? undefined : missingScope(principal, access);
  if (missing === undefined) return;
  exchange.note({ scope: missing });
  throw outOfScope(missing, principal);
}
