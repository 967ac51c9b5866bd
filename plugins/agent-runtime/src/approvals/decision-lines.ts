import type { ApprovalDecision } from '@plugboard/kernel/contracts';
import type { Approval } from './approval.js';

const LINE = /^[\s`]*(approve|deny)\s+(all(?:\s+[a-z0-9]{6})?|[a-z0-9]{6})(?:\s+because\s+(.+?))?[\s.!`]*$/i;

/** How many lines that look like decisions a text consists of; 0 if it has another line. */
export function countDecisions(text: string): number {
  const lines = linesOf(text);
  return lines.every((line) => LINE.test(line)) ? lines.length : 0;
}

/**
 * Reads a message that decides about calls: `approve K7M2QX`, `deny K7M2QX because …`, `approve
 * all K7M2QX`, `deny all`, one per line, in any case. To approve all takes a code, which only the
 * server's text has: nobody is talked into it (S-74).
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
    const [first, second] = what.toUpperCase().split(/\s+/);
    const waiting = approvals.filter(({ state }) => state === 'waiting');
    const needsCode = approve || second !== undefined;
    const all = needsCode && !waiting.some(({ code }) => code === second) ? [] : waiting;
    const named = first === 'ALL' ? all : approvals.filter(({ code }) => code === first);
    if (named.length === 0) return undefined;
    decisions.push(...named.map(({ id }) => ({ id, approve, reason })));
  }
  return lines.length === 0 ? undefined : decisions;
}

function linesOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}
