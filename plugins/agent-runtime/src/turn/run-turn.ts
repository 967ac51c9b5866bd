import type { AgentEvent, Clock, Contribution, Extensions, Interceptor, Message, SessionStore, Turn } from '@plugboard/kernel';
import type { ToolDeclaration, TurnRequest } from '@plugboard/kernel/contracts';
import { type AgentEvents, addUsage, Transcript, TurnError, type Usage } from '@plugboard/kernel/contracts';
import type { Agent } from '../directory/agent.js';
import { answerTokens, mergeParams } from '../directory/parameters.js';
import { type HistoryBudget, historyBudget, historyView } from '../history/history-view.js';
import { estimateTokens, tokensOf } from '../history/message-size.js';
import { newMessages } from '../history/session-input.js';
import { dueSummary } from '../history/summary/due-summary.js';
import type { LoadedSession, SessionHistory } from '../sessions/session-history.js';
import { assertNotFull } from '../sessions/session-limits.js';
import type { StoreCall } from '../sessions/store-call.js';
import { pulled, type WriteBatch } from '../streams/pulled.js';
import type { ConcurrencyLimiter } from './concurrency-limiter.js';
import type { IdempotentTurn } from './idempotency.js';
import { assertBatch, endedEarly, eventsOf } from './interceptor-errors.js';
import { type LoopDependencies, runLoop } from './loop.js';
import { MixedCalls } from './mixed-calls.js';
import { type SummaryResult, summarize } from './summarize.js';
import type { TurnOutput } from './turn-output.js';

export interface TurnDependencies extends LoopDependencies {
  readonly clock: Clock;
  readonly limiter: ConcurrencyLimiter;
  readonly stores: Extensions<SessionStore>;
  readonly interceptors: Extensions<Interceptor>;
  readonly storeCall: StoreCall;
}

/** One turn, and what it runs with. */
interface Run {
  readonly agent: Agent;
  readonly request: TurnRequest;
  /** Present if the request has an idempotency key. */
  readonly idempotent: IdempotentTurn | undefined;
  readonly signal: AbortSignal;
  readonly deps: TurnDependencies;
  readonly output: TurnOutput;
}

/**
 * Runs one turn, from the queue to its end: within the server's limit, with the session's history,
 * through the interceptors, and stored before its readers learn that it has finished.
 *
 * @param history the history of the turn's session, if it has one. No other turn uses it meanwhile.
 * @param idempotent present if the request has an idempotency key.
 * @param abort aborts the turn, with the error for the caller as the reason. The agent's time limit
 *   aborts it here.
 * @throws TurnError, or another error, which is a defect.
 */
export async function runTurn(
  agent: Agent,
  request: TurnRequest,
  history: SessionHistory | undefined,
  idempotent: IdempotentTurn | undefined,
  abort: AbortController,
  deps: TurnDependencies,
  output: TurnOutput,
): Promise<void> {
  const { signal } = abort;
  const owner = { project: request.principal.project, caller: request.principal.tokenId };
  const queued = deps.limiter.acquire(owner, signal);
  if (queued) await queued;
  const timer = deps.clock.after(agent.timeout, () => abort.abort(outOfTime(agent)));
  try {
    const run: Run = { agent, request, idempotent, signal, deps, output };
    await (history ? inSession(run, history) : stateless(run));
  } catch (error) {
    // An error after the abort is a consequence of it.
    throw signal.aborted ? signal.reason : error;
  } finally {
    timer.cancel();
    deps.limiter.release(owner);
  }
}

function stateless(run: Run): Promise<void> {
  const { agent, request, idempotent } = run;
  if (mayMixCalls(agent)) return withMixedCalls(run);
  const turn = makeTurn(run, request.messages);
  const onBatch = idempotent && ((batch: readonly AgentEvent[]) => idempotent.add(batch));
  const commit = idempotent && (() => idempotent.store());
  return pump(run, turn, { onBatch, commit });
}

/**
 * Runs a stateless turn that may end with both client tool calls and calls that ran on the server.
 */
async function withMixedCalls(run: Run): Promise<void> {
  const { agent, request, idempotent, signal, deps } = run;
  const mixed = new MixedCalls(deps.stores.one(), agent.name, request.principal);
  const messages = await deps.storeCall(() => mixed.expand(request.messages), 'pendingToolCalls.load');
  const turn = makeTurn(run, messages);
  const transcript = new Transcript();
  const calls: AgentEvent[] = [];
  await pump(run, turn, {
    onBatch(batch) {
      idempotent?.add(batch);
      transcript.add(batch);
      for (const event of batch) if (event.type === 'tool-call') calls.push(event);
    },
    async commit() {
      await deps.storeCall(() => mixed.save(messages, transcript.messages(), calls), 'pendingToolCalls.save');
      signal.throwIfAborted();
      await idempotent?.store();
    },
  });
}

async function inSession(run: Run, history: SessionHistory): Promise<void> {
  const { agent, request, idempotent, signal, deps } = run;
  const { id, store } = history;
  const { policy } = agent.history;
  const earlierTools = deps.tools.settled(id, signal);
  if (earlierTools) await earlierTools;
  const stored = await deps.storeCall(() => history.current(), 'load', id);
  assertNotFull(stored);
  const { system, added } = newMessages(stored.messages, request.messages);
  const toolbox = await deps.toolboxes.of(agent.tools, signal);
  const tools = agent.clientTools === 'passthrough' ? [...toolbox.declarations, ...request.clientTools] : toolbox.declarations;
  const budget = historyBudget(agent.history, tokensLeft(agent, request, [...system, ...added], tools));
  const turn = makeTurn(run, [...system, ...historyView(stored, added, policy, budget)]);
  await deps.storeCall(() => store.begin(id, { turnId: turn.id, input: added }), 'begin', id);
  let isCommitted = false;
  try {
    const summarizing = summarizeIfDue(run, history, stored, added, budget);
    const summarized = summarizing && (await summarizing);
    const conversation = summarized?.stored ?? stored;
    const view = summarized && historyView(conversation, added, policy, budget);
    const shortenedTurn = view ? { ...turn, messages: [...system, ...view] } : turn;
    const transcript = new Transcript();
    await pump(run, shortenedTurn, {
      usageBefore: summarized?.usage,
      onBatch(batch) {
        idempotent?.add(batch);
        transcript.add(batch);
      },
      async commit() {
        const messages = [...added, ...transcript.messages()];
        const commit = { turnId: turn.id, messages, user: request.session?.user, idempotency: idempotent?.beginStoring() };
        await deps.storeCall(() => history.commit(conversation, commit), 'commit', id);
        isCommitted = true;
        idempotent?.end();
      },
    });
  } finally {
    // If this fails too, `recover` finds the turn at the next start.
    if (!isCommitted) await deps.storeCall(() => store.abandon(id, turn.id), 'abandon', id).catch(() => {});
  }
}

/** Summarizes the oldest turns of the conversation. Returns undefined if that is not due. */
function summarizeIfDue(
  { agent, signal, deps }: Run,
  history: SessionHistory,
  stored: LoadedSession,
  added: readonly Message[],
  budget: HistoryBudget,
): Promise<SummaryResult> | undefined {
  if (!history.maySummarize(stored)) return undefined;
  const due = dueSummary(stored, added, agent.history.policy, budget);
  return due && summarize(history, stored, due, agent, deps.models, deps.storeCall, signal);
}

interface PumpOptions {
  /** Usage before the first step, which the turn reports but the agent's limits do not count. */
  readonly usageBefore?: Usage | undefined;
  /** Observes each batch before the readers receive it. */
  readonly onBatch?: ((batch: readonly AgentEvent[]) => void) | undefined;
  /** Stores the turn. Runs before the readers receive `finished`, so that they can rely on it. */
  readonly commit?: (() => Promise<void>) | undefined;
}

/**
 * Runs the agent loop and its interceptors and writes the events to the output, up to the terminal
 * event.
 */
async function pump(run: Run, turn: Turn, { usageBefore, onBatch, commit }: PumpOptions): Promise<void> {
  const { output } = run;
  const finish = async (batch: readonly AgentEvent[], last: AgentEvent, store: () => Promise<void>) => {
    if (batch.length > 1) await output.write(batch.slice(0, -1));
    turn.signal.throwIfAborted();
    await store();
    output.write([last]);
  };
  const write = (events: readonly AgentEvent[]) => {
    if (output.closed) throw turn.signal.reason;
    const sealed = output.seal(events);
    const batch = usageBefore ? withUsage(sealed, usageBefore) : sealed;
    onBatch?.(batch);
    const last = batch.at(-1);
    return commit && last?.type === 'finished' ? finish(batch, last, commit) : output.write(batch);
  };
  const interceptors = run.deps.interceptors.all();
  if (interceptors.length === 0) return loop(run, turn, write);
  for await (const batch of intercepted(run, turn, interceptors)) {
    assertBatch(interceptors, batch);
    await write(batch);
    if (output.end) return;
  }
  if (!output.closed) throw endedEarly(interceptors);
}

/** Tokens left for stored messages, after the answer and everything else in the request. */
function tokensLeft(agent: Agent, request: TurnRequest, messages: readonly Message[], tools: readonly ToolDeclaration[]): number {
  const params = mergeParams(agent.params, request.params, false);
  const answer = answerTokens(params, agent.contextWindow);
  const prompt = messages[0]?.role === 'system' ? 0 : estimateTokens(agent.system ?? '');
  return messages.reduce((left, message) => left - tokensOf(message), agent.contextWindow - answer - prompt - tokensOf(tools));
}

/** Adds the usage before the first step to the usage of the turn. */
function withUsage(batch: readonly AgentEvent[], before: Usage): readonly AgentEvent[] {
  const last = batch.at(-1);
  return last?.type === 'finished' ? [...batch.slice(0, -1), { ...last, usage: addUsage(before, last.usage) }] : batch;
}

/** Wraps the agent loop in the interceptors that the turn began with. */
function intercepted(run: Run, turn: Turn, interceptors: readonly Contribution<Interceptor>[]): AgentEvents {
  const from = (index: number, current: Turn): AgentEvents => {
    const interceptor = interceptors[index];
    if (!interceptor) return pulled((write) => loop(run, current, write));
    const returned = interceptor.value(current, (next) => from(index + 1, next));
    return eventsOf(interceptor.entry, returned);
  };
  return from(0, turn);
}

function loop({ agent, idempotent, signal, deps }: Run, turn: Turn, write: WriteBatch): Promise<void> {
  return runLoop(agent, turn, deps, write, idempotent && (() => idempotent.onToolsStart(signal)));
}

function makeTurn({ agent, request, signal, deps }: Run, messages: readonly Message[]): Turn {
  const takesTools = agent.clientTools === 'passthrough';
  return {
    id: `turn_${deps.ids.base62(20)}`,
    agent: agent.name,
    principal: request.principal,
    session: request.session && `api:${request.session.key}`,
    system: messages.some(({ role }) => role === 'system') ? undefined : agent.system,
    messages,
    clientTools: takesTools ? request.clientTools : [],
    params: mergeParams(agent.params, request.params, takesTools),
    incremental: request.incremental,
    requestId: request.requestId,
    metadata: request.metadata,
    signal,
  };
}

/** Whether one step may have both client tool calls and calls of the agent's own tools. */
function mayMixCalls(agent: Agent): boolean {
  return agent.tools.length > 0 && agent.clientTools === 'passthrough';
}

function outOfTime(agent: Agent): TurnError {
  return new TurnError('timed_out', `The agent did not finish within ${agent.timeout / 1000} s.`);
}
