import type { Message, SessionStore } from '@plugboard/kernel';
import type { AssistantMessage, InterruptedTurn, ToolMessage, UserMessage } from '@plugboard/kernel/contracts';
import { openToolCalls, TurnError } from '@plugboard/kernel/contracts';
import { NOTHING_SPENT } from '../engine/turn/pending-calls.js';
import { messagesAtEnd } from './history/messages-at-end.js';
import { newMessages } from './history/session-input.js';
import { type ApprovalRecord, approvalIdOf, approvalOf, encodeApproval, settledApproval } from './pending/approval.js';
import { denialOf } from './pending/denial.js';
import { type BegunCall, callRemovals } from './pending/turn-journal.js';
import { interruptedRecord } from './turn-record.js';

/** In place of a message that the store does not have, or cannot add to the session any more. */
const LOST_INPUT: UserMessage = { role: 'user', content: '[The message of an interrupted turn, which was not kept.]' };

/**
 * Makes the calls that a dead process began part of their session, with the input of their turn.
 * The next turn of the session goes on with them, before its first model call: what has an outcome
 * is told, and what has none is settled.
 *
 * @param entry of the runtime.
 * @param calls at least one.
 * @returns whether they were kept: not if a call before them is still open.
 */
export async function keepCalls(
  store: SessionStore,
  entry: string,
  { id, turnId, input }: InterruptedTurn,
  calls: readonly BegunCall[],
): Promise<boolean> {
  const expected = await store.version(id);
  const turn = ((await store.info(id))?.turns ?? 0) + 1;
  const history = await messagesAtEnd((page) => store.turns(id, page));
  const open = openToolCalls(history);
  const before = open.length === 0 ? [] : (await store.approvals.get(id.project, open.map(approvalIdOf))).map(approvalOf);
  const results = before.map(resultOf).filter((result) => result !== undefined);
  if (results.length < before.length) return false;
  const answered = new Set(results.map(({ tool_call_id }) => tool_call_id));
  const said = input.filter((message) => message.role !== 'tool' || !answered.has(message.tool_call_id));
  const messages = [...results, ...added([...history, ...results], said), asking(calls)];
  const record = interruptedRecord(calls.map(({ call: { id, name, tool } }) => ({ id, name, tool })));
  const approvals = [...before.map(settledApproval), ...calls.map((call) => recordOf(call, turn))].map(encodeApproval);
  await store.commit(id, { turnId, expected, messages, record, approvals, state: callRemovals(calls, entry) });
  return true;
}

/** The result of a call of an earlier turn, which the dead process had found out. */
function resultOf({ call, state, outcome, decision }: ApprovalRecord): ToolMessage | undefined {
  const content = state === 'ended' ? outcome?.content : state === 'denied' && decision ? denialOf(decision) : undefined;
  return content === undefined ? undefined : { role: 'tool', tool_call_id: call.id, content };
}

/** The input as it may follow the stored messages. */
function added(history: readonly Message[], input: readonly Message[]): readonly Message[] {
  if (input.length === 0) return newMessages(history, [LOST_INPUT]).added;
  try {
    return newMessages(history, input).added;
  } catch (error) {
    if (!(error instanceof TurnError)) throw error;
    return newMessages(history, [LOST_INPUT]).added;
  }
}

function asking(calls: readonly BegunCall[]): AssistantMessage {
  return {
    role: 'assistant',
    content: null,
    tool_calls: calls.map(({ call }) => ({
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.arguments },
    })),
  };
}

/** The call as later turns find it, by its id. */
function recordOf({ turnId, index, call, schema, principal, begunAt, outcome }: BegunCall, turn: number) {
  return {
    id: approvalIdOf(call.id),
    begun: true,
    state: outcome ? 'ended' : 'started',
    code: '',
    caller: '',
    createdAt: begunAt,
    expiresAt: begunAt,
    spent: NOTHING_SPENT,
    turnId,
    index,
    call,
    schema,
    principal,
    outcome,
    turn,
  } as const;
}
