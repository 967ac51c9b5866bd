import type { Message } from '@plugboard/kernel';
import { OPEN, type Target, type ToolMessage, type TurnApproval } from '@plugboard/kernel/contracts';
import type { WaitingChild } from '../../engine/tools/intercept-tool.js';
import type { ParentCall } from '../../engine/turn/parent-call.js';
import type { Spent } from '../../engine/turn/pending-calls.js';
import type { ApprovalRecord, Decision, NewApproval } from './approval.js';
import type { ApprovedCall } from './approved-call.js';
import { denialOf } from './denial.js';
import { inPlaceOfResults } from './results.js';
import { NOTHING_OPEN, type SettledCalls } from './settle-open-calls.js';

/** What the turn of a call needs to go on after a decision about its first call that waits. */
interface ChildState {
  readonly calls: readonly NewApproval[];
  readonly spent: Spent;
  /** What followed the input. */
  readonly messages: readonly Message[];
}

/** How the turn of a call goes on. */
interface ResumedChild {
  readonly state: ChildState;
  readonly decision: Decision;
}

/** The conversation of a turn that goes on, after its input. */
export interface ResumedConversation {
  readonly calls: SettledCalls;
  /** What was before the turn waited. */
  readonly earlier: readonly Message[];
  /** The results of its calls, or places for them. */
  readonly results: readonly Message[];
}

/** Between the calls on the way to the one that a person sees. */
const INSIDE = ' › ';

/** A call that waits, as a person sees it: of a child, the call inside (AG-9). */
export function asShown(call: NewApproval['call'], child: WaitingChild | undefined): Pick<NewApproval, 'call' | 'child'> {
  if (!child) return { call };
  const { tool: inner, arguments: text } = child.shown;
  const tool = inner ? { entry: call.tool.entry + INSIDE + inner.entry, name: inner.name } : call.tool;
  return { call: { ...call, arguments: text, tool }, child: { call, state: child.state } };
}

/** How the turn of a call goes on that waited for a person. Undefined for any other turn. */
export function resumedConversation(parent: ParentCall | undefined): ResumedConversation | undefined {
  const resumed = parent?.options.resumed as ResumedChild | undefined;
  if (!resumed) return undefined;
  const calls = resumedCalls(resumed);
  const { approved, again = [], closing } = calls;
  const results = inPlaceOfResults([], { approved: [...approved, ...again], closing });
  return { calls, earlier: resumed.state.messages, results };
}

/** The calls of a child after a decision about the first one. The others are asked about again. */
function resumedCalls({ state: { calls, spent }, decision }: ResumedChild): SettledCalls {
  const [decided, ...again] = calls as readonly [ApprovalRecord, ...ApprovalRecord[]];
  const isDenied = !decision.approve && decided.child === undefined;
  const denial: ToolMessage = { role: 'tool', tool_call_id: decided.call.id, content: denialOf(decision) };
  const approved = isDenied ? [] : [{ ...decided, state: 'approved' as const, decision }];
  return { ...NOTHING_OPEN, approved, closing: isDenied ? [denial] : [], again, spent };
}

/**
 * What a child needs to go on, of which calls wait.
 * @param waiting its calls that wait, and its messages with the results of the others.
 */
export function waitingChild(
  { options: { use } }: ParentCall,
  waiting: Pick<ChildState, 'calls' | 'messages' | 'spent'> | undefined,
  resumed: ResumedConversation | undefined,
  visibility: Target['toolVisibility'],
): WaitingChild | undefined {
  const [first] = waiting?.calls ?? [];
  if (!waiting || !first) return undefined;
  const state: ChildState = { ...waiting, messages: [...(resumed?.earlier ?? []), ...waiting.messages] };
  return { shown: shownCall(first, visibility), spent: use.spent, state };
}

/** A call that waits, less what the `toolVisibility` of its agent hides. */
function shownCall({ call, changed }: NewApproval, visibility: Target['toolVisibility']): WaitingChild['shown'] {
  return {
    tool: visibility === 'none' ? undefined : call.tool,
    arguments: visibility === 'full' ? (changed ?? call.arguments) : '{}',
  };
}

/** A call that waits again, because the turn ended with a decision about another one. */
export function askAgain({ call, child, index, turnId, principal }: NewApproval, ask: () => TurnApproval): ApprovedCall {
  return {
    call: child?.call ?? call,
    index,
    owned: { turnId, principal: principal ?? OPEN, shown: undefined, settle: async () => ask() },
    outcome: () => undefined,
  };
}
