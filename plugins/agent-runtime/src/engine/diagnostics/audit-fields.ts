import { createHash } from 'node:crypto';
import type { Principal } from '@plugboard/kernel';

/** Who did it, for an audit line. */
export function callerFields(principal: Principal | undefined): object {
  return principal ? { token_id: principal.tokenId, token_name: principal.token, subject: principal.subject } : {};
}

/** Stands for a value that is not logged. */
export function digestOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16);
}
