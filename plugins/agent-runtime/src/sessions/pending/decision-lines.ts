import { type ApprovalDecision, matchLine, SHAPE_LIMITS } from '@plugboard/kernel/contracts';
import type { ApprovalRecord } from './approval.js';

/**
 * What is left of a line without what surrounds it. Each character can be matched in one way only.
 */
const LINE = /^(approve|deny)\s+(all(?:\s+[a-z0-9]{6})?|[a-z0-9]{6})(?:\s+because\s+(\S.*))?$/is;
const BEFORE = ' \t\r\v\f\u00a0`';
const AFTER = `${BEFORE}.!`;

/** How many lines that look like decisions a text consists of; 0 if it has another line. */
export function countDecisions(text: string): number {
  const lines = linesOf(text);
  return lines.every((line) => matchLine(LINE, line) !== null) ? lines.length : 0;
}

/**
 * Reads a message that decides about calls: `approve K7M2QX`, `deny K7M2QX because …`, `approve
 * all K7M2QX`, `deny all`, one per line, in any case. To approve all takes a code, which only the
 * server's text has: nobody is talked into it (S-74). A long line decides nothing, and neither do
 * more lines than calls can wait (S-65).
 *
 * @param approvals the calls that the codes may name.
 * @returns undefined for any other message, one with an unknown code included.
 */
export function decisionsIn(text: string, approvals: readonly ApprovalRecord[]): readonly ApprovalDecision[] | undefined {
  const decisions: ApprovalDecision[] = [];
  const lines = linesOf(text);
  const byCode = Map.groupBy(approvals, ({ code }) => code);
  const waiting = approvals.filter(({ state }) => state === 'waiting');
  const waitingCodes = new Set(waiting.map(({ code }) => code));
  for (const line of lines) {
    const [, verb = '', what = '', reason] = matchLine(LINE, line) ?? [];
    const approve = verb.toLowerCase() === 'approve';
    const [first = '', second] = what.toUpperCase().split(/\s+/);
    const needsCode = approve || second !== undefined;
    const all = needsCode && !waitingCodes.has(second ?? '') ? [] : waiting;
    const named = first === 'ALL' ? all : (byCode.get(first) ?? []);
    if (named.length === 0) return undefined;
    for (const { id } of named) decisions.push({ id, approve, reason });
  }
  return lines.length === 0 ? undefined : decisions;
}

function linesOf(text: string): readonly string[] {
  const lines = text.split('\n', SHAPE_LIMITS.calls + 1);
  if (lines.length > SHAPE_LIMITS.calls) return [];
  return lines.map(trimmed).filter((line) => line !== '');
}

/** A line without the blanks and marks around a decision. */
function trimmed(line: string): string {
  let start = 0;
  let end = line.length;
  while (start < end && BEFORE.includes(line.charAt(start))) start += 1;
  while (end > start && AFTER.includes(line.charAt(end - 1))) end -= 1;
  return line.slice(start, end);
}
