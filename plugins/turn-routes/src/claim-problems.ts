import type { ClaimResult } from '@plugboard/kernel/contracts';
import { REPLAYED_HEADER } from './headers.js';

/** Why a request with an idempotency key is neither run nor replayed. */
export interface ClaimProblem {
  readonly status: 409 | 422 | 502;
  readonly message: string;
  readonly code?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The problems by what the key was claimed for. */
export const CLAIM_PROBLEMS: Readonly<Record<Exclude<ClaimResult['kind'], 'new' | 'replay' | 'failed'>, ClaimProblem>> = {
  running: {
    status: 409,
    message: 'The request with this Idempotency-Key is still being answered; try again in a moment.',
    code: 'idempotency_in_progress',
    headers: { 'retry-after': '2' },
  },
  mismatch: {
    status: 422,
    message: 'This Idempotency-Key was used for a different request; send every new request with a new key.',
    code: 'idempotency_mismatch',
  },
  interrupted: {
    status: 502,
    message:
      'The request with this Idempotency-Key was interrupted after its tools had started. To run it again, send it with a new key.',
    headers: { ...REPLAYED_HEADER, 'x-should-retry': 'false' },
  },
};
