import type { Logger } from './log.js';

/**
 * Writes one line of the audit log: a log line with `"log":"audit"` and the name of the event.
 * @param event in snake case, for example `configuration_reloaded`. Each plugin documents its own.
 * @param fields who did it and to what. Never a secret.
 */
export function audit(log: Logger, event: string, fields: Readonly<Record<string, unknown>>, message: string): void {
  log.info({ log: 'audit', event, ...fields }, message);
}
