import type { Message } from '@plugboard/kernel';
import { CONVERSATION_PREFIX, type TurnRecord, textOf, type Usage } from '@plugboard/kernel/contracts';
import { outcomeOfFinish } from '@plugboard/open-responses';
import { itemId } from '../items/item-id.js';
import type { CallRecord, ConversationTurn, ItemView } from '../items/turn-to-items.js';

/**
 * What happened in a turn, for callers. Times end in `_ms`; `start_ms` and `first_token_ms` count
 * from the arrival of the request. Of a turn without a record only its number is known.
 */
export interface TurnEntry {
  readonly id: string;
  readonly object: 'conversation.turn';
  /** From 1. */
  readonly turn: number;
  /** Unix time in seconds. */
  readonly created_at: number | null;
  readonly status: 'completed' | 'incomplete';
  readonly incomplete_details: { readonly reason: string } | null;
  readonly queued_ms: number | null;
  /** From the arrival of the request to the end. */
  readonly duration_ms: number | null;
  readonly usage: UsageBody | null;
  readonly steps: readonly StepEntry[];
  readonly calls: readonly CallEntry[];
  readonly decisions: readonly DecisionEntry[];
}

interface StepEntry {
  readonly connection: string;
  readonly start_ms: number;
  readonly first_token_ms: number | null;
  readonly duration_ms: number;
  readonly usage: UsageBody | null;
  readonly reasoning: string | null;
}

interface CallEntry {
  /** The id of its item. Null if the call is of an earlier turn, and did not run in this one. */
  readonly item_id: string | null;
  readonly type: 'mcp_call' | 'function_call';
  /** Null for a client tool. */
  readonly server_label: string | null;
  readonly name: string;
  /** The number of its step, from 1; 0 for a call of an earlier turn. */
  readonly step: number;
  readonly start_ms: number;
  readonly duration_ms: number | null;
  readonly status: 'completed' | 'failed' | 'incomplete' | 'waiting' | 'client';
  readonly error: string | null;
  readonly approval_request_id: string | null;
}

interface DecisionEntry {
  readonly approval_request_id: string;
  readonly approve: boolean;
  readonly reason: string | null;
  readonly by: string;
}

interface UsageBody {
  readonly input_tokens: number;
  readonly input_tokens_details: { readonly cached_tokens: number };
  readonly output_tokens: number;
  readonly output_tokens_details: { readonly reasoning_tokens: number };
  readonly total_tokens: number;
}

/** Where a turn is: the id of its conversation, and its number. */
interface TurnPlace {
  readonly conversation: string;
  readonly turn: number;
}

function turnId({ conversation, turn }: TurnPlace): string {
  return `turn_${conversation.slice(CONVERSATION_PREFIX.length)}_${turn}`;
}

/** Parses the id of a turn; undefined if it is malformed. */
export function parseTurnId(id: string): TurnPlace | undefined {
  const [, digest, turn] = /^turn_([0-9a-f]{40})_([1-9]\d{0,8})$/.exec(id) ?? [];
  return digest === undefined ? undefined : { conversation: CONVERSATION_PREFIX + digest, turn: Number(turn) };
}

/** Describes a turn. Shows of its calls and reasoning what its items show. */
export function turnEntry({ turn, messages, record }: ConversationTurn, view: ItemView): TurnEntry {
  const { conversation, toolVisibility } = view;
  const id = turnId({ conversation, turn });
  if (!record) return { ...UNKNOWN, id, turn };
  const reason = incompleteReason(record);
  const isHidden = toolVisibility === 'none';
  return {
    id,
    object: 'conversation.turn',
    turn,
    created_at: record.startedAt === undefined ? null : Math.floor(record.startedAt / 1000),
    status: reason === undefined ? 'completed' : 'incomplete',
    incomplete_details: reason === undefined ? null : { reason },
    queued_ms: record.queued,
    duration_ms: record.duration,
    usage: usageBody(record.usage),
    steps: isHidden ? [] : record.steps.map((step) => stepEntry(step, toolVisibility === 'full')),
    calls: isHidden ? [] : record.calls.map((call) => callEntry(call, messages, { conversation, turn }, view)),
    decisions: (record.decisions ?? []).map(({ approval, approve, reason = null, by }) => ({
      approval_request_id: approval,
      approve,
      reason,
      by,
    })),
  };
}

const UNKNOWN = {
  object: 'conversation.turn',
  created_at: null,
  status: 'completed',
  incomplete_details: null,
  queued_ms: null,
  duration_ms: null,
  usage: null,
  steps: [],
  calls: [],
  decisions: [],
} as const;

/** The reason that the response of the turn gave; `shutdown` if the process died. */
function incompleteReason({ reason, limit, usage }: TurnRecord): string | undefined {
  if (reason === 'interrupted') return 'shutdown';
  return outcomeOfFinish({ type: 'finished', reason, limit, usage: usage ?? NO_TOKENS }).reason;
}

const NO_TOKENS: Usage = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 };

function stepEntry(step: TurnRecord['steps'][number], showsReasoning: boolean): StepEntry {
  return {
    connection: step.connection,
    start_ms: step.start,
    first_token_ms: step.firstToken ?? null,
    duration_ms: step.duration,
    usage: usageBody(step.usage),
    reasoning: (showsReasoning ? step.reasoning : undefined) ?? null,
  };
}

function callEntry(call: CallRecord, messages: readonly Message[], at: TurnPlace, { toolVisibility }: ItemView): CallEntry {
  const shown = toolVisibility === 'full' ? resultOf(call.id, messages) : undefined;
  return {
    item_id: itemOf(call, messages, at),
    type: call.tool ? 'mcp_call' : 'function_call',
    server_label: call.tool?.entry ?? null,
    name: call.tool?.name ?? call.name,
    step: call.step,
    start_ms: call.start,
    duration_ms: call.duration ?? null,
    status: call.state === 'cut' ? 'incomplete' : call.state,
    error: call.state === 'failed' ? (shown ?? 'The tool call failed.') : null,
    approval_request_id: call.approval ?? null,
  };
}

/** The id of the item of a call: where it was made, or where its result is. */
function itemOf({ id, tool, state, approval }: CallRecord, messages: readonly Message[], at: TurnPlace): string | null {
  if (state === 'waiting' && approval !== undefined) return approval;
  for (const [index, message] of messages.entries()) {
    const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : [];
    const call = calls.findIndex((one) => one.id === id);
    if (call >= 0) return itemId(tool ? 'mcp' : 'fc', { ...at, message: index, call });
    if (message.role === 'tool' && message.tool_call_id === id) return itemId('mcp', { ...at, message: index });
  }
  return null;
}

function resultOf(id: string, messages: readonly Message[]): string | undefined {
  const found = messages.find((message) => message.role === 'tool' && message.tool_call_id === id);
  return found && textOf(found.content);
}

function usageBody(usage: Usage | undefined): UsageBody | null {
  if (!usage) return null;
  const { promptTokens, completionTokens, cachedTokens, reasoningTokens } = usage;
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + completionTokens,
  };
}
