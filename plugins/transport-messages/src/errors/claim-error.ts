import type { ClaimResult } from '@plugboard/kernel/contracts';
import { CLAIM_MESSAGES, REPLAYED_HEADER } from '@plugboard/turn-routes';
import { MessagesError } from './messages-error.js';
import { turnFailureError } from './turn-failure.js';

/** The error for a request with an idempotency key that is neither run nor replayed. */
export function claimError(claimed: Exclude<ClaimResult, { kind: 'new' | 'replay' }>): MessagesError {
  switch (claimed.kind) {
    case 'running':
      return new MessagesError(409, 'invalid_request_error', CLAIM_MESSAGES.running, { headers: { 'retry-after': '2' } });
    case 'mismatch':
      return new MessagesError(422, 'invalid_request_error', CLAIM_MESSAGES.mismatch);
    case 'interrupted':
      return new MessagesError(500, 'api_error', CLAIM_MESSAGES.interrupted, {
        headers: { ...REPLAYED_HEADER, 'x-should-retry': 'false' },
      });
    case 'failed':
      return turnFailureError(claimed.failure, false);
  }
}
