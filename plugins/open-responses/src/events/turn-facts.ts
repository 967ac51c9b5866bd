import type { Target, TurnRecord, Usage } from '@plugboard/kernel/contracts';

/**
 * What happened in a turn, for callers: in the list of a session's turns, and in the events of a
 * turn that runs. Times end in `_ms`; `start_ms` and `first_token_ms` count from the arrival of the
 * request.
 */
export interface TurnFacts {
  /** Unix time in seconds. */
  readonly created_at: number | null;
  /** The same in milliseconds. */
  readonly created_at_ms: number | null;
  readonly queued_ms: number;
  /** From the arrival of the request to the end. Null while the turn runs. */
  readonly duration_ms: number | null;
  readonly usage: UsageFacts | null;
  readonly steps: readonly StepFacts[];
  readonly calls: readonly CallFacts[];
  readonly decisions: readonly DecisionFacts[];
}

interface StepFacts {
  readonly connection: string;
  readonly start_ms: number;
  readonly first_token_ms: number | null;
  /** Null while the model answers. */
  readonly duration_ms: number | null;
  readonly usage: UsageFacts | null;
  readonly reasoning: string | null;
  readonly reasoning_ms: number | null;
}

interface CallFacts {
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
  readonly status: 'in_progress' | 'completed' | 'failed' | 'incomplete' | 'waiting' | 'client';
  readonly error: string | null;
  readonly approval_request_id: string | null;
}

interface DecisionFacts {
  readonly approval_request_id: string;
  readonly approve: boolean;
  readonly reason: string | null;
  readonly by: string;
}

interface UsageFacts {
  readonly input_tokens: number;
  readonly input_tokens_details: { readonly cached_tokens: number };
  readonly output_tokens: number;
  readonly output_tokens_details: { readonly reasoning_tokens: number };
  readonly total_tokens: number;
}

type Call = TurnRecord['calls'][number];

/** Where the items of a turn are, and how much of them may be shown. */
export interface TurnView {
  readonly visibility: Target['toolVisibility'];
  /** The id of the item of a call; null if it has none. */
  itemOf(call: Call): string | null;
  /** The result of a call; undefined if it has none. */
  resultOf(call: Call): string | undefined;
}

/** Describes a turn from its record. */
export function turnFacts(record: TurnRecord, view: TurnView): TurnFacts {
  const { startedAt, queued, duration, reason, usage, decisions = [] } = record;
  const isHidden = view.visibility === 'none';
  return {
    created_at: startedAt === undefined ? null : Math.floor(startedAt / 1000),
    created_at_ms: startedAt ?? null,
    queued_ms: queued,
    duration_ms: reason === undefined ? null : duration,
    usage: usageFacts(usage),
    steps: isHidden ? [] : record.steps.map((step) => stepFacts(step, view)),
    calls: isHidden ? [] : record.calls.map((call) => callFacts(call, record, view)),
    decisions: decisions.map(({ approval, approve, reason: why = null, by }) => ({
      approval_request_id: approval,
      approve,
      reason: why,
      by,
    })),
  };
}

export function stepFacts(step: TurnRecord['steps'][number], { visibility }: TurnView): StepFacts {
  const { reasoning = null, reasoned = null } = visibility === 'full' ? step : {};
  return {
    connection: step.connection,
    start_ms: step.start,
    first_token_ms: step.firstToken ?? null,
    duration_ms: step.duration ?? null,
    usage: usageFacts(step.usage),
    reasoning,
    reasoning_ms: reasoned,
  };
}

export function callFacts(call: Call, { reason }: TurnRecord, view: TurnView): CallFacts {
  const { tool, name, state } = call;
  const shown = view.visibility === 'full' && state === 'failed' ? view.resultOf(call) : undefined;
  return {
    item_id: view.itemOf(call),
    type: tool ? 'mcp_call' : 'function_call',
    server_label: tool?.entry ?? null,
    name: tool?.name ?? name,
    step: call.step,
    start_ms: call.start,
    duration_ms: call.duration ?? null,
    status: state !== 'cut' ? state : reason === undefined ? 'in_progress' : 'incomplete',
    error: state === 'failed' ? (shown ?? 'The tool call failed.') : null,
    approval_request_id: call.approval ?? null,
  };
}

function usageFacts(usage: Usage | undefined): UsageFacts | null {
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
