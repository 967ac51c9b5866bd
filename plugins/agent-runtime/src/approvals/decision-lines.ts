import type { ApprovalDecision } from '@plugboard/kernel/contracts';
import type { Approval } from './approval.js';

const LINE = /^[\s`]*(approve|deny)\s+(all|[a-z0-9]{6})(?:\s+because\s+(.+?))?[\s.!`]*$/i;

/** Whether a text consists of lines that look like decisions. */
export function looksLikeDecisions(text: string): boolean {
  const lines = linesOf(text);
  return lines.length > 0 && lines.every((line) => LINE.test(line));
}

/**
 * Reads a message that decides about calls: `approve K7M2QX`, `deny K7M2QX because …`, `approve
 * all`, one per line, in any case.
 *
 * @param approvals the calls that the codes may name.
 * @returns undefined for any other message, one with an unknown code included.
 */
export function decisionsIn(text: string, approvals: readonly Approval[]): readonly ApprovalDecision[] | undefined {
  const decisions: ApprovalDecision[] = [];
  const lines = linesOf(text);
  for (const line of lines) {
    const [, verb = '', what = '', reason] = LINE.exec(line) ?? [];
    const approve = verb.toLowerCase() === 'approve';
    const named = approvals.filter(({ code, state }) =>
      what.toLowerCase() === 'all' ? state === 'waiting' : code === what.toUpperCase(),
    );
    if (named.length === 0) return undefined;
    decisions.push(...named.map(({ id }) => ({ id, approve, reason })));
  }
  return lines.length === 0 ? undefined : decisions;
}

function linesOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}
