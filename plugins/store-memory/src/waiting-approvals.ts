import type { ApprovalPage, StoredApproval } from '@plugboard/kernel/contracts';
import { approvalBytes, type MemorySession } from './memory-session.js';

/** Returns a page of the approvals of a project that wait, in the order of their requests. */
export function waitingApprovals(
  sessions: Iterable<MemorySession>,
  project: string,
  { limit, order, after, agents, reserve }: ApprovalPage,
): readonly StoredApproval[] {
  const all = [...sessions]
    .filter(({ id }) => id.project === project)
    .flatMap(({ approvals }) => [...approvals])
    .sort((a, b) => (order === 'asc' ? a.sequence - b.sequence : b.sequence - a.sequence));
  const found = all.map(({ stored }) => stored);
  const start = after === undefined ? 0 : found.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && start === 0) return [];
  const page = found
    .slice(start)
    .filter(({ waits, session }) => waits && (agents?.includes(session.agent) ?? true))
    .slice(0, limit);
  reserve?.(page.reduce((sum, approval) => sum + approvalBytes(approval), 0));
  return page;
}
