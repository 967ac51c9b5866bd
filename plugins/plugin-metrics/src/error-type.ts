import { ModelError } from '@plugboard/kernel';
import { ProjectQuotaExceeded, TurnError, VersionConflict } from '@plugboard/kernel/contracts';

/** Names an error by a code. Its message may have anything in it, and is never a label. */
export function errorTypeOf(error: unknown, otherwise: string): string {
  if (error instanceof TurnError) return error.code;
  if (error instanceof ModelError) return error.code ?? 'model_failed';
  // What the runtime makes of these errors of a store.
  if (error instanceof ProjectQuotaExceeded) return 'quota_exceeded';
  if (error instanceof VersionConflict) return 'session_busy';
  return otherwise;
}
