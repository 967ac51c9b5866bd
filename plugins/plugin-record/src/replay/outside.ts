import type { FailureCode } from '@plugboard/kernel/contracts';
import type { Recording } from '../format/recording.js';

const FINISHED: readonly string[] = ['stop', 'length', 'tool_calls', 'content_filter'];

/** Whether a turn ended with an answer, and did not fail. The code `content_filter` is both. */
export function isFinished(status: string): boolean {
  return FINISHED.includes(status);
}

/** What ends a turn without the agent or its model. */
const OUTSIDE: readonly (FailureCode | string)[] = [
  'abandoned',
  'draining',
  'insufficient_quota',
  'lease_lost',
  'quota_exceeded',
  'session_busy',
  'session_deleted',
  'session_full',
  'stopped',
  'store_failed',
  'timed_out',
  'turn_cancelled',
  'turn_interrupted',
];

/** What the server refuses a turn with, because of its budgets. */
const REFUSED: readonly (FailureCode | string)[] = ['insufficient_quota', 'quota_exceeded'];

/** Codes that a model connection has, too. */
const OF_BOTH: readonly string[] = ['overloaded', 'rate_limited'];

/**
 * Whether people, time or the server ended the turn, or a limit that other turns have used too. A
 * replay ends where the recording does, in the same way.
 */
export function endedFromOutside(recording: Recording): boolean {
  const { status } = recording.end;
  if (OF_BOTH.includes(status)) return recording.attempts.at(-1)?.error === undefined;
  return OUTSIDE.includes(status) || sharedLimit(recording);
}

/**
 * Whether a limit ended the turn of which the turns before it, above it or below it used a part.
 */
function sharedLimit({ turn, tools, end: { limit } }: Recording): boolean {
  if (limit === undefined || limit === 'budget') return false;
  return turn.lead !== undefined || turn.parent !== undefined || tools.some(({ agent }) => agent !== undefined);
}

/** Whether the server refused the turn before a model answered: there is nothing to run again. */
export function isRefused({ end: { status }, attempts }: Recording): boolean {
  return REFUSED.includes(status) && attempts.every(({ events }) => events.length === 0);
}
