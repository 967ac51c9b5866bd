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

/** Characters of a message that are logged: a log line stays below 600. */
const MAX_MESSAGE = 120;

/** Describes an expected error for a log line: its message, and that of its deepest cause, once. */
export function reasonOf(error: Error): string {
  let deepest = error;
  while (deepest.cause instanceof Error && deepest.cause !== deepest) deepest = deepest.cause;
  const isNamed = error.message.includes(deepest.message);
  return truncate(error.message) + (isNamed ? '' : ` (cause: ${truncate(deepest.message)})`);
}

function truncate(text: string): string {
  return text.length <= MAX_MESSAGE ? text : `${text.slice(0, MAX_MESSAGE).toWellFormed()}… (${text.length} characters)`;
}
