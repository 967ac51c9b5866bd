import { TurnError } from '@plugboard/kernel/contracts';
import type { ApprovalRecord } from './approval.js';

/** The same for an unknown approval and for one that the caller may not decide. */
export function approvalNotFound(id: string): TurnError {
  return new TurnError('approval_not_found', `No request for approval with the id '${id.slice(0, 64)}' was found.`);
}

export function approvalDecided({ id, decision }: ApprovalRecord): TurnError {
  const how = decision?.by === 'person' ? (decision.approve ? 'was approved' : 'was denied') : 'counts as denied';
  return new TurnError('approval_decided', `The call of '${id}' ${how} before.`);
}

export function approvalExpired(id: string): TurnError {
  return new TurnError('approval_expired', `Nobody decided about '${id}' in time: the call counts as denied.`);
}

export function approvalPending(): TurnError {
  return new TurnError(
    'approval_pending',
    'Tool calls of this session wait for a decision or for the caller that began the turn, who alone can send the next message.',
  );
}
