import { ModelError } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';

/**
 * The `error.type` of an error: a code of the server, never a message, which may quote anything.
 *
 * @param signal of the turn. After an abort, errors are consequences of it.
 */
export function errorType(error: unknown, signal?: AbortSignal): string {
  const cause: unknown = signal?.aborted ? signal.reason : error;
  if (cause instanceof TurnError) return cause.code;
  if (cause instanceof ModelError) return cause.code ?? 'model_failed';
  return 'crashed';
}
