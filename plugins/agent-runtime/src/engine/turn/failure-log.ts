import type { Logger, PluginContext } from '@plugboard/kernel';
import { type FailureCode, TurnError, type TurnRequest } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import { reasonOf } from '../diagnostics/reason.js';

/**
 * Failures that are logged as warnings. The others are caused by the caller, or were logged where
 * they occurred: a failure of a model with its connection (`ModelCalls`).
 */
const WARNED: ReadonlySet<FailureCode> = new Set(['timed_out', 'store_failed']);

/** Logs why turns failed. Only a defect is logged with its stack. */
export class FailureLog {
  readonly #log: Logger;

  constructor(@inject(CONTEXT) { log }: PluginContext) {
    this.#log = log;
  }

  /** A turn ignored its signal: what it uses may still be busy with it. */
  overdue(reason: Error, { requestId, target }: TurnRequest): void {
    const fields = { event: 'turn_overdue', request_id: requestId, agent: target.name, reason: reasonOf(reason) };
    this.#log.warn(fields, 'a turn still ran five seconds after it was ended');
  }

  /** @param error why the turn failed, as its caller sees it. */
  log(error: unknown, { requestId, target }: TurnRequest): void {
    const fields = { request_id: requestId, agent: target.name };
    if (!(error instanceof TurnError)) this.#log.error({ ...fields, err: error }, 'a turn crashed');
    else if (WARNED.has(error.code)) this.#log.warn({ ...fields, reason: reasonOf(error) }, 'a turn failed');
    else this.#log.debug({ ...fields, reason: reasonOf(error) }, 'a turn failed');
  }
}
