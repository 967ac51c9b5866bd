import type { ClaimResult } from '@plugboard/kernel/contracts';
import { CLAIM_MESSAGES, REPLAYED_HEADER } from '@plugboard/turn-routes';
import { invalidRequest, type ProtocolError, serviceError } from '../errors/errors.js';
import { turnFailureError } from '../errors/turn-failure.js';

/** The error for a request with an idempotency key that is neither run nor replayed. */
export function claimError(claimed: Exclude<ClaimResult, { kind: 'new' | 'replay' }>): ProtocolError {
  switch (claimed.kind) {
    case 'running':
      return invalidRequest(CLAIM_MESSAGES.running, {
        status: 409,
        code: 'idempotency_in_progress',
        headers: { 'retry-after': '2' },
      });
    case 'mismatch':
      return invalidRequest(CLAIM_MESSAGES.mismatch, {
        status: 422,
        param: 'Idempotency-Key',
        code: 'idempotency_mismatch',
      });
    case 'interrupted':
      return serviceError(502, CLAIM_MESSAGES.interrupted, { ...REPLAYED_HEADER, 'x-should-retry': 'false' });
    case 'failed':
      return turnFailureError(claimed.failure, false);
  }
}
