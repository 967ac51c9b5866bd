import type { Logger } from './log.js';

/** What an auditor asks a log for. */
export type AuditEvent =
  | 'token_created'
  | 'token_rotated'
  | 'token_revoked'
  | 'token_first_used'
  | 'session_deleted'
  | 'configuration_reloaded'
  | 'open_start'
  | 'forbidden';

/** Writes one line of the audit log: the lines of the log that carry `"log":"audit"`. Never a secret, never a session's key. */
export function audit(log: Logger, event: AuditEvent, facts: Readonly<Record<string, unknown>>, message: string): void {
  log.info({ log: 'audit', event, ...facts }, message);
}
