import type { ClaimResult } from '@plugboard/kernel/contracts';
import { invalidRequest, type ProtocolError, serviceError } from '../errors/errors.js';
import { turnFailureError } from '../errors/turn-failure.js';

/** The header of a replayed answer. */
export const REPLAYED_HEADER = { 'idempotent-replayed': 'true' } as const;

/** The error for a request with an idempotency key that is neither run nor replayed. */
export function claimError(claimed: Exclude<ClaimResult, { kind: 'new' | 'replay' }>): ProtocolError {
  switch (claimed.kind) {
    case 'running':
      return invalidRequest('The request with this Idempotency-Key is still being answered; try again in a moment.', {
        status: 409,
        code: 'idempotency_in_progress',
        headers: { 'retry-after': '2' },
      });
    case 'mismatch':
      return invalidRequest('This Idempotency-Key was used for a different request; send every new request with a new key.', {
        status: 422,
        param: 'Idempotency-Key',
        code: 'idempotency_mismatch',
      });
    case 'interrupted':
      return serviceError(
        502,
        'The request with this Idempotency-Key was interrupted after its tools had started. To run it again, send it with a new key.',
        { ...REPLAYED_HEADER, 'x-should-retry': 'false' },
      );
    case 'failed':
      return turnFailureError(claimed.failure, false);
  }
}
