import type { Target, TurnRecord } from '@plugboard/kernel/contracts';
import { usageOf } from './response-object.js';

type Call = TurnRecord['calls'][number];

/** Where the items of a turn are, and how much of them may be shown. */
export interface TurnView {
  readonly visibility: Target['toolVisibility'];
  /** The id of the item of a call; null if it has none. */
  itemOf(call: Call): string | null;
  /** The result of a call; undefined if it has none. */
  resultOf(call: Call): string | undefined;
}

/**
 * What happened in a turn, from its record: in the list of a session's turns, and in the events of
 * a turn that runs. Times end in `_ms`; `start_ms` and `first_token_ms` count from the arrival of
 * the request. Null is what is not known, or not yet.
 */
export function turnFacts(record: TurnRecord, view: TurnView) {
  const { startedAt, queued, duration, reason, usage, decisions = [] } = record;
  const isHidden = view.visibility === 'none';
  return {
    created_at: startedAt === undefined ? null : Math.floor(startedAt / 1000),
    created_at_ms: startedAt ?? null,
    queued_ms: queued,
    duration_ms: reason === undefined ? null : duration,
    usage: usageOf(usage),
    steps: isHidden ? [] : record.steps.map((step) => stepFacts(step, view)),
    calls: isHidden ? [] : record.calls.map((call) => wholeCall(call, reason !== undefined, view)),
    decisions: decisions.map(({ approval, approve, reason: why = null, by }) => ({
      approval_request_id: approval,
      approve,
      reason: why,
      by,
    })),
  };
}

export function stepFacts(step: TurnRecord['steps'][number], { visibility }: TurnView) {
  const { reasoning = null, reasoned = null } = visibility === 'full' ? step : {};
  return {
    connection: step.connection,
    start_ms: step.start,
    first_token_ms: step.firstToken ?? null,
    duration_ms: step.duration ?? null,
    usage: usageOf(step.usage),
    reasoning,
    reasoning_ms: reasoned,
  };
}

/**
 * The `step` of a call counts from 1. Of a call of an earlier turn it is 0.
 * @param isOver whether its turn has ended
 */
export function callFacts(call: Call, isOver: boolean, view: TurnView) {
  const { tool, name, state } = call;
  const hasFailed = state === 'failed' || state === 'unknown';
  const shown = view.visibility === 'full' && hasFailed ? view.resultOf(call) : undefined;
  return {
    item_id: view.itemOf(call),
    type: tool ? 'mcp_call' : 'function_call',
    server_label: tool?.entry ?? null,
    name: tool?.name ?? name,
    step: call.step,
    start_ms: call.start,
    duration_ms: call.duration ?? null,
    status: state !== 'cut' ? state : isOver ? 'incomplete' : 'in_progress',
    error: hasFailed ? (shown ?? 'The tool call failed.') : null,
    approval_request_id: call.approval ?? null,
  };
}

/** The turn that a call started. */
export interface NestedFacts {
  readonly agent: string;
  readonly usage: ReturnType<typeof usageOf>;
  readonly steps: readonly ReturnType<typeof stepFacts>[];
  readonly calls: readonly ReturnType<typeof wholeCall>[];
}

/** The turn that a call started, if it started one. Its calls have ids as in `svc:nested`. */
export function nestedFacts({ nested, state }: Call, isOver: boolean, view: TurnView): NestedFacts | undefined {
  if (!nested || view.visibility !== 'full') return undefined;
  const inner: TurnView = { ...view, itemOf: ({ id }) => id, resultOf: () => undefined };
  const hasEnded = isOver || state !== 'cut';
  return {
    agent: nested.agent,
    usage: usageOf(nested.usage),
    steps: nested.steps.map((step) => stepFacts(step, inner)),
    calls: nested.calls.map((call) => wholeCall(call, hasEnded, inner)),
  };
}

function wholeCall(call: Call, isOver: boolean, view: TurnView): ReturnType<typeof callFacts> & { nested?: NestedFacts } {
  const nested = nestedFacts(call, isOver, view);
  return { ...callFacts(call, isOver, view), ...(nested && { nested }) };
}
