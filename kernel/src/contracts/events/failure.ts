import type { Failure, TurnFailed } from './event.js';
import { TurnError } from './event.js';

/** Converts an error to a failure: a `TurnError`, or `crashed` without details. @experimental */
export function failureOf(error: unknown, toolsRan: boolean): Failure {
  if (error instanceof TurnError) {
    const { retryAfter, param, isUpstream, retryable } = error.options;
    return { code: error.code, message: error.message, toolsRan, retryAfter, param, isUpstream, retryable };
  }
  return { code: 'crashed', message: 'The agent failed because of an internal error; see the server log for details.', toolsRan };
}

/** Makes the terminal event of a failed turn. @experimental */
export function failed(failure: Failure): TurnFailed {
  return { type: 'failed', failure };
}
