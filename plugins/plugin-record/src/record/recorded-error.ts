import { ModelError } from '@plugboard/kernel';
import { type FailureCode, TurnError } from '@plugboard/kernel/contracts';
import type { RecordedError } from '../format/recording.js';

/** What a recording keeps of an error. A defect's message may have a secret: it is left out. */
export function recordedError(error: unknown): RecordedError {
  if (error instanceof ModelError) {
    const { message, code, retryable, retryAfter, isRequestFault, isUpstream } = error;
    return { kind: 'model', message, code, retryable, retryAfter, isRequestFault, isUpstream };
  }
  if (error instanceof TurnError) {
    const { message, code, options } = error;
    const { param, retryAfter, retryable, isUpstream } = options;
    return { kind: 'turn', message, code, param, retryAfter, retryable, isUpstream };
  }
  return { kind: 'defect', message: 'a defect in the server or a plugin' };
}

/** The error again. */
export function errorOf(recorded: RecordedError): Error {
  const { kind, message, code, ...options } = recorded;
  if (kind === 'model') return new ModelError(message, { ...options, code: code as ModelError['code'] });
  if (kind === 'turn') {
    const { retryAfter, param, isUpstream, retryable } = options;
    return new TurnError(code as FailureCode, message, {
      retryAfter,
      isUpstream,
      retryable,
      ...(param !== undefined && { param }),
    });
  }
  return new Error(message);
}
