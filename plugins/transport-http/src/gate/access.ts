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
  if (typeof access === 'string') return;
  const isOneOf = 'anyOf' in access;
  if (isOneOf && access.anyOf.some((scope) => principal.scopes.includes(scope))) return;
  const missing = missingScope(principal, isOneOf ? access.anyOf : access);
  if (missing === undefined) return;
  exchange.note({ scope: missing });
  throw outOfScope(missing, principal);
}
