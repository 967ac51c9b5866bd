import type { Logger as PinoLogger } from 'pino';
import { AUDIT, type Logger } from './log.js';

/**
 * Writes an audit line: a log line with `"log":"audit"` and the name of the event. Audit lines are
 * written whatever `log.level` is, to the file `log.audit` if there is one (S-48).
 *
 * @param event in snake case, for example `configuration_reloaded`. Each plugin documents its own.
 * @param fields who did it and to what. Never a secret.
 * @experimental
 */
export function audit(log: Logger, event: string, fields: Readonly<Record<string, unknown>>, message: string): void {
  const { [AUDIT]: auditLog, bindings } = log as PinoLogger & { readonly [AUDIT]?: PinoLogger };
  const line = { log: 'audit', event, ...fields };
  if (auditLog) auditLog.info({ ...bindings.call(log), ...line }, message);
  else log.info(line, message);
}
