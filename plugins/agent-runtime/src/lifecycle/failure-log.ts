import type { Logger } from '@plugboard/kernel';
import { type FailureCode, TurnError, type TurnRequest } from '@plugboard/kernel/contracts';

/**
 * Failures that are logged as warnings. The others are caused by the caller, or are in the access
 * log. Failures of models are logged where they occur, with their connection.
 */
const WARNED: ReadonlySet<FailureCode> = new Set(['timed_out', 'store_failed']);

/** Logs why turns failed. */
export class FailureLog {
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  log(error: unknown, { requestId, target }: TurnRequest): void {
    const fields = { err: error, request_id: requestId, agent: target.name };
    if (!(error instanceof TurnError)) this.#log.error(fields, 'a turn crashed');
    else if (WARNED.has(error.code)) this.#log.warn(fields, 'a turn failed');
    else this.#log.debug(fields, 'a turn failed');
  }
}
