import type { Message } from '@plugboard/kernel';
import {
  type Account,
  type ApprovalDecision,
  openToolCalls,
  type SessionId,
  type ToolMessage,
  type TurnRecord,
  type TurnRequest,
  textOf,
} from '@plugboard/kernel/contracts';
import { NOTHING_SPENT, type Spent } from '../../engine/turn/pending-calls.js';
import { hasNewMessages, newMessages } from '../history/session-input.js';
import {
  type ApprovalRecord,
  approvalDecided,
  approvalNotFound,
  approvalPending,
  type Decision,
  isOwn,
  type NewApproval,
} from './approval.js';
import type { ApprovalRecords, OpenApprovals } from './approval-records.js';
import { countDecisions, decisionsIn } from './decision-lines.js';
import { denialOf } from './denial.js';
import { inPlaceOfResults } from './results.js';

/** Another caller that tries more codes than this denies what waits. */
const MAX_WRONG_CODES = 10;

/** The session goes on with another message. */
const OVERTAKEN: Decision = { approve: false, by: 'overtaken' };

/** What the model is told of a call that a copy of the session cannot run. */
const DENIED_IN_COPY = 'The call was denied and did not run: the conversation was copied before it was approved.';
const BEGUN_IN_COPY =
  'The call began to run, but was interrupted. Whether it took effect is unknown: the conversation was copied before that was found out.';

/** What has become of the calls that were open before a turn. */
export interface SettledCalls {
  /** Calls that nobody has decided about. Nothing runs until somebody has. */
  readonly waiting: readonly ApprovalRecord[];
  /** Ids of calls whose results the caller owes. Decisions wait for them. */
  readonly owed: readonly string[];
  /** Calls that run before the first model call. */
  readonly approved: readonly ApprovalRecord[];
  readonly denied: readonly ApprovalRecord[];
  /** Of a child: calls that are asked about again, one after the other. */
  readonly again?: readonly NewApproval[];
  /** Results of the calls that do not run. */
  readonly closing: readonly ToolMessage[];
  /** For the record of the turn: the decisions that take effect. */
  readonly decisions: NonNullable<TurnRecord['decisions']>;
  /** Whether nothing runs yet: a person or the caller has to say something first. */
  readonly isBlocked: boolean;
  /** Parameters and used limits of the turn that asked, if this one goes on with it. */
  readonly params: Readonly<Record<string, unknown>> | undefined;
  readonly spent: Spent;
}

/** A request to a session, and what becomes of the calls that were open before it. */
export interface SettledRequest {
  /** System messages of the request. They apply to this turn only. */
  readonly system: readonly Message[];
  /** The messages that are stored with the turn. */
  readonly added: readonly Message[];
  readonly calls: SettledCalls;
}

/** A request with the account of its turn. */
type AccountedRequest = TurnRequest & { readonly account: Account };

/**
 * Reads a request to a session: its new messages, its results of the caller's calls and its
 * decisions, each of which is taken once. A request that goes on with another message overtakes
 * what waits. Answers at once if no call is open.
 *
 * @param history the conversation so far.
 * @throws TurnError `invalid_request`, `approval_not_found`, `approval_decided`; `approval_pending`
 *   if calls wait for another caller.
 */
export function settleOpenCalls(
  records: ApprovalRecords,
  request: TurnRequest,
  account: Account,
  session: SessionId,
  history: readonly Message[],
): SettledRequest | Promise<SettledRequest> {
  const openIds = openToolCalls(history);
  if (openIds.length > 0 || request.approvals?.length) return settle(records, { ...request, account }, session, history, openIds);
  const { system, added } = newMessages(history, request.messages);
  return { system, added, calls: NOTHING_OPEN };
}

async function settle(
  records: ApprovalRecords,
  request: AccountedRequest,
  session: SessionId,
  history: readonly Message[],
  openIds: readonly string[],
): Promise<SettledRequest> {
  const { principal, account } = request;
  const open = await records.openIn(session, openIds, account);
  const { messages, decisions } = await readDecisions(records, request, open);
  const waitsForPerson = new Set([...open.approvals.map(({ call }) => call.id), ...open.copied.map(({ call }) => call.id)]);
  const ofCaller = openIds.filter((id) => !waitsForPerson.has(id));
  // A decision before the caller's own results waits for them.
  const owed = decisions && !hasNewMessages(history, messages) ? ofCaller : [];
  const stays = new Set([...waitsForPerson, ...owed]);
  const { system, added: fresh } = newMessages(history, messages, stays, decisions !== undefined);
  const overtakes = fresh.some(({ role }) => role !== 'tool');
  const settled: ApprovalRecord[] = [];
  for (const approval of open.approvals) {
    const decision = decisions?.get(approval.id);
    if (decision) {
      const { approve, reason } = decision;
      settled.push(await records.decide(approval, { approve, reason, by: 'person' }, account, principal));
    } else if (overtakes) settled.push(await records.decide(approval, OVERTAKEN, account, principal));
    else settled.push(approval);
  }
  const calls = settledCalls(settled, open.copied, owed, overtakes);
  const hasResults = messages.some(({ role }) => role === 'tool');
  return { system, added: calls.isBlocked ? (hasResults ? fresh : []) : inPlaceOfResults(fresh, calls), calls };
}

/** The decisions of a request by the ids of what they are about, and its other messages. */
async function readDecisions(
  records: ApprovalRecords,
  { principal, account, messages, approvals: items = [] }: AccountedRequest,
  open: OpenApprovals,
): Promise<{ readonly messages: readonly Message[]; readonly decisions: ReadonlyMap<string, ApprovalDecision> | undefined }> {
  const approvals = open.approvals.filter(needsPerson);
  const last = messages.at(-1);
  const text = approvals.length > 0 && last?.role === 'user' ? textOf(last.content) : '';
  await assertOwn(records, { principal, account }, approvals, text);
  const byId = new Map(approvals.map((approval) => [approval.id, approval]));
  for (const item of items) await assertDecidable(records, { principal, account }, byId.get(item.id), item);
  const lines = decisionsIn(text, approvals);
  if (!lines) return { messages, decisions: items.length > 0 ? decisionsById(items) : undefined };
  return { messages: messages.slice(0, -1), decisions: decisionsById([...items, ...lines]) };
}

/** The first decision about each call counts. */
function decisionsById(decisions: readonly ApprovalDecision[]): ReadonlyMap<string, ApprovalDecision> {
  return new Map(decisions.toReversed().map((decision) => [decision.id, decision]));
}

/** @throws TurnError if calls wait for another caller, who alone may go on. */
async function assertOwn(
  records: ApprovalRecords,
  { principal, account }: Pick<AccountedRequest, 'principal' | 'account'>,
  approvals: readonly ApprovalRecord[],
  text: string,
): Promise<void> {
  const foreign = approvals.filter((approval) => approval.state !== 'denied' && !isOwn(approval, principal));
  if (foreign.length === 0) return;
  const codes = countDecisions(text);
  for (const approval of codes > 0 ? foreign : []) {
    if (approval.state !== 'waiting') continue;
    const wrongCodes = (approval.wrongCodes ?? 0) + codes;
    await records.replace(approval, { wrongCodes });
    if (wrongCodes < MAX_WRONG_CODES) continue;
    const [current = approval] = await records.get(approval.session.project, [approval.id], account);
    await records.decide(current, { approve: false, by: 'guessed' }, account, principal);
  }
  throw approvalPending();
}

/**
 * @throws TurnError `approval_not_found` for a call of another session or caller;
 *   `approval_decided` for one that was decided otherwise.
 */
async function assertDecidable(
  records: ApprovalRecords,
  { principal, account }: Pick<AccountedRequest, 'principal' | 'account'>,
  open: ApprovalRecord | undefined,
  item: ApprovalDecision,
): Promise<void> {
  const [known] = open ? [open] : await records.get(principal.project, [item.id], account);
  if (!known || !isOwn(known, principal)) throw approvalNotFound(item.id);
  // Of a call that was denied without a person, the model is told, whatever this decision says.
  const isOther = open?.decision?.by === 'person' && item.approve !== open.decision.approve;
  if (!open || isOther) throw approvalDecided(known);
}

/** @param copied calls that were copied from another session, and do not run. */
function settledCalls(
  settled: readonly ApprovalRecord[],
  copied: readonly ApprovalRecord[],
  owed: readonly string[],
  overtakes: boolean,
): SettledCalls {
  const waiting = settled.filter(({ state }) => state === 'waiting');
  const isDenied = (one: ApprovalRecord) => one.state === 'denied' && !goesOn(one);
  const approved = settled.filter((one) => one.state !== 'waiting' && !isDenied(one));
  const denied = settled.filter(isDenied);
  const isBlocked = waiting.length + owed.length > 0;
  return {
    waiting,
    owed,
    approved,
    denied,
    closing: [
      ...denied.map(({ call, decision = OVERTAKEN }) => resultOf(call.id, denialOf(decision))),
      ...copied.map(({ call, begun }) => resultOf(call.id, begun ? BEGUN_IN_COPY : DENIED_IN_COPY)),
    ],
    decisions: isBlocked
      ? []
      : [...[...approved, ...denied].filter(needsPerson).map(decisionOf), ...copied.filter(needsPerson).map(decisionInCopy)],
    isBlocked,
    params: overtakes ? undefined : settled.find(({ params }) => params !== undefined)?.params,
    spent: overtakes ? NOTHING_SPENT : (settled[0]?.spent ?? NOTHING_SPENT),
  };
}

/** A conversation without open calls. */
export const NOTHING_OPEN = settledCalls([], [], [], false);

function resultOf(callId: string, content: string): ToolMessage {
  return { role: 'tool', tool_call_id: callId, content };
}

function decisionOf({ id, call, decision = OVERTAKEN }: ApprovalRecord): SettledCalls['decisions'][number] {
  const { approve, reason, by } = decision;
  return { approval: id, call: call.id, approve, reason, by };
}

function decisionInCopy({ id, call }: ApprovalRecord): SettledCalls['decisions'][number] {
  return { approval: id, call: call.id, approve: false, by: 'copied' };
}

/** A person denied a call in the turn that it started: that turn goes on without the call. */
function goesOn({ child, decision }: ApprovalRecord): boolean {
  return child !== undefined && decision?.by === 'person';
}

/** Nobody decides about a call that a dead process began. */
function needsPerson({ begun }: ApprovalRecord): boolean {
  return !begun;
}
