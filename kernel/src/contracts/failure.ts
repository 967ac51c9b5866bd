import type { Failure, TurnFailed } from './event.js';
import { TurnError } from './event.js';

/** What the caller is told of a throw: a `TurnError` as it says, anything else as a defect that tells nothing of the inside. */
export function failureOf(error: unknown, toolsRan: boolean): Failure {
  if (error instanceof TurnError) {
    return {
      code: error.code,
      message: error.message,
      toolsRan,
      retryAfter: error.options.retryAfter,
      param: error.options.param,
    };
  }
  return { code: 'crashed', message: 'The agent failed because of an internal error; the server log tells more.', toolsRan };
}

export function failed(failure: Failure): TurnFailed {
  return { type: 'failed', failure };
}
