import type { ClaimProblem } from '@plugboard/turn-routes';
import { invalidRequest, type ProtocolError, serviceError } from '../errors/errors.js';

/** The error for a request with an idempotency key that is neither run nor replayed. */
export function claimError({ status, message, code, headers }: ClaimProblem): ProtocolError {
  if (status === 502) return serviceError(status, message, headers);
  return invalidRequest(message, { status, code, headers, param: status === 422 ? 'Idempotency-Key' : null });
}
