import type { IdSource, Principal, SessionStore } from '@plugboard/kernel';
import {
  type Approval,
  type ApprovalChange,
  callerId,
  conversationId,
  type SessionId,
  type StoredApproval,
  type Target,
  TurnError,
  type TurnToolCall,
} from '@plugboard/kernel/contracts';
import type { ToolOutcome } from '../../engine/tools/run-tool.js';
import type { Spent } from '../../engine/turn/pending-calls.js';

/** How a call was decided, and by whom. */
export interface Decision {
  readonly approve: boolean;
  readonly reason?: string | undefined;
  /**
   * - `person`: the caller that began the turn, or one with the scope `approve`;
   * - `expired`: nobody decided in time;
   * - `overtaken`: the session went on with another message;
   * - `cancelled`: the session was cancelled;
   * - `guessed`: somebody tried too many codes.
   */
  readonly by: 'person' | 'expired' | 'overtaken' | 'cancelled' | 'guessed';
  /** Tells two equal decisions apart. */
  readonly nonce?: string | undefined;
}

/**
 * Where a call stands. One that a dead process began is `started` or `ended`, without a decision.
 *
 * - `waiting`: nobody has decided.
 * - `denied`, `approved`: decided. The next request of the session goes on.
 * - `started`: the call began to run. After a crash, how far it got is unknown.
 * - `ended`: it has a result, which the conversation does not have yet.
 * - `settled`: the conversation has its result.
 */
type ApprovalState = 'waiting' | 'denied' | 'approved' | 'started' | 'ended' | 'settled';

/** What the runtime keeps of a call that needs approval, as JSON. */
interface ApprovalFields {
  readonly state: ApprovalState;
  readonly code: string;
  readonly call: TurnToolCall & { readonly tool: NonNullable<TurnToolCall['tool']> };
  /** The arguments that run, as JSON, if a tool interceptor changed those of the call. */
  readonly changed?: string | undefined;
  /**
   * The turn that the call started, if that waits: `call` is then what a person sees, with the id
   * of this one, which goes on.
   */
  readonly child?: { readonly call: ApprovalFields['call']; readonly state: unknown } | undefined;
  /** A hash of the tool's schema. */
  readonly schema: string;
  readonly turnId: string;
  /** Number of the call in its turn. */
  readonly index: number;
  /** Identifies the caller that began the turn (`callerId`). */
  readonly caller: string;
  /** The caller; null for `OPEN`. */
  readonly principal: Principal | null;
  /** The parameters of the turn. Only the first call that waits in a turn has them (S-69). */
  readonly params?: Readonly<Record<string, unknown>> | undefined;
  readonly spent: Spent;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Whether no person is asked: a turn began the call, and its process died. */
  readonly begun?: boolean | undefined;
  readonly decision?: Decision | undefined;
  readonly outcome?: ToolOutcome | undefined;
  /** Decisions with a wrong code, by other callers. */
  readonly wrongCodes?: number | undefined;
  /** Number of the turn in its session. */
  readonly turn: number;
}

/** What lists read of a call that needs approval. */
export interface ListedApproval extends Pick<ApprovalFields, 'call' | 'changed' | 'caller' | 'createdAt' | 'expiresAt' | 'turn'> {
  readonly id: string;
  readonly session: SessionId;
}

/** A call that needs approval, as it was read from the store. */
export interface ApprovalRecord extends ApprovalFields, ListedApproval {
  readonly stored: StoredApproval;
}

/** What a turn asks for. The times are set when it is stored. */
export type NewApproval = Omit<ApprovalFields, 'createdAt' | 'expiresAt' | 'turn'> & { readonly id: string };

/** @throws Error if another program has changed the text. */
export function approvalOf(stored: StoredApproval): ApprovalRecord {
  return { ...JSON.parse(stored.text), ...listedApproval(stored), stored };
}

/** @throws Error if another program has changed the text. */
export function listedApproval(stored: Omit<StoredApproval, 'text'>): ListedApproval {
  const { id, session, caller, expiresAt, listed } = stored;
  return { ...JSON.parse(listed), id, session, caller, expiresAt };
}

/** The approval as a store keeps it. */
export function encodeApproval(approval: ApprovalFields & { readonly id: string }): ApprovalChange {
  const { id, caller, expiresAt, call, changed, createdAt, turn, ...rest } = approval;
  const { stored, session, ...kept } = rest as typeof rest & Partial<ApprovalRecord>;
  const listed = JSON.stringify({ call, changed, createdAt, turn });
  return { id, waits: kept.state === 'waiting', caller, expiresAt, listed, text: JSON.stringify(kept) };
}

/** An approval whose result the conversation has. Only what was asked and decided is kept of it. */
export function settledApproval(approval: ApprovalRecord): ApprovalRecord {
  return { ...approval, state: 'settled', outcome: undefined, params: undefined, child: undefined, principal: null };
}

/** The id of the approval of a call: who knows the call finds it without an index. */
export function approvalIdOf(callId: string): string {
  return `mcpr_${callId.replace(/^call_/, '')}`;
}

/** Whether any of these calls waits for a person, or did. */
export async function anyWaits(store: SessionStore, project: string, callIds: readonly string[]): Promise<boolean> {
  return callIds.length > 0 && (await store.approvals.get(project, callIds.map(approvalIdOf))).length > 0;
}

/** Whether the principal began the turn that asked. */
export function isOwn({ caller }: ListedApproval, principal: Principal): boolean {
  return callerId(principal) === caller;
}

export function shownApproval(
  { id, session, call, changed, createdAt, expiresAt }: ListedApproval,
  visibility: Target['toolVisibility'],
): Approval {
  return {
    id,
    conversation: conversationId(session),
    session: session.key,
    agent: session.agent,
    tool: visibility === 'none' ? undefined : call.tool,
    arguments: visibility === 'full' ? (changed ?? call.arguments) : undefined,
    createdAt,
    expiresAt,
  };
}

/** Without characters that look alike. */
const ALPHABET = 'ABCDEFGHJKMNPQRSTVWXYZ23456789';
const CODE_LENGTH = 6;

/** Makes a code that nobody can guess. */
export function newCode(ids: IdSource): string {
  let code = '';
  while (code.length < CODE_LENGTH) {
    const byte = Number.parseInt(ids.hex(2), 16);
    if (byte < 240) code += ALPHABET[byte % ALPHABET.length]; // 240 = 8 × 30: no character is more frequent
  }
  return code;
}

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
