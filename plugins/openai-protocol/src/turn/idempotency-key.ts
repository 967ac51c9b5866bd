import type { HttpRequest } from '@plugboard/transport-http';
import { idempotencyKeyOf } from '@plugboard/turn-routes';
import { invalidValue } from '../errors/request-errors.js';

/** Parses the header `Idempotency-Key`: see `idempotencyKeyOf`. @throws ProtocolError 400 */
export function parseIdempotencyKey(request: Pick<HttpRequest, 'headers' | 'rawHeaders' | 'principal'>): string | undefined {
  return idempotencyKeyOf(request, invalidValue);
}
