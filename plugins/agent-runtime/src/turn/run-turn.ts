import type {
  Clock,
  Extensions,
  Interceptor,
  Message,
  SessionStore,
  ToolDeclaration,
  Turn,
  TurnRequest,
} from '@plugboard/kernel';
import { type AgentEvent, type AgentEvents, addUsage, Transcript, TurnError, type Usage } from '@plugboard/kernel';
import type { Agent } from '../directory/agent.js';
import { answerTokens, mergeParams } from '../directory/parameters.js';
import { historyBudget, historyView } from '../history/history-view.js';
import { estimate, tokensOf } from '../history/message-size.js';
import { newMessages } from '../history/session-input.js';
import { dueSummary } from '../history/summary/due-summary.js';
import type { SessionHistory } from '../sessions/session-history.js';
import { assertNotFull } from '../sessions/session-limits.js';
import type { StoreCall } from '../sessions/store-call.js';
import type { ConcurrencyLimiter } from './concurrency-limiter.js';
import type { IdempotentTurn } from './idempotency.js';
import { type LoopDependencies, runLoop } from './loop.js';
import { PendingCalls } from './pending-tool-calls.js';
import { summarize } from './summarize.js';

export interface TurnDependencies extends LoopDependencies {
  readonly clock: Clock;
  readonly limiter: ConcurrencyLimiter;
  readonly stores: Extensions<SessionStore>;
  readonly interceptors: Extensions<Interceptor>;
  readonly storeCall: StoreCall;
}

/**
 * One turn, from its place in the queue to its end: within the process's limit, with the session's
 * history, through the interceptors, and committed before anyone is told that it has finished.
 *
 * @param history of the session that the turn belongs to, if it belongs to one; the session sees to
 *   it that there is no other turn meanwhile.
 * @param idempotent where the turn's request may be repeated.
 * @param abort aborted by whoever ends the turn early, with what the caller is to be told as the
 *   reason; and here, when the agent's time is over.
 * @throws TurnError, or whatever a defect throws.
 */
export async function* runTurn(
  agent: Agent,
  request: TurnRequest,
  history: SessionHistory | undefined,
  idempotent: IdempotentTurn | undefined,
  abort: AbortController,
  deps: TurnDependencies,
): AsyncGenerator<readonly AgentEvent[]> {
  const { signal } = abort;
  await deps.limiter.acquire(signal);
  const timer = deps.clock.after(agent.timeout, () => abort.abort(outOfTime(agent)));
  try {
    if (history) yield* inSession(history, idempotent, agent, request, signal, deps);
    else if (idempotent) yield* idempotent.kept(stateless(idempotent, agent, request, signal, deps), signal);
    else yield* stateless(idempotent, agent, request, signal, deps);
  } catch (error) {
    // What breaks off because the turn was ended early is not the reason, but its consequence.
    throw signal.aborted ? signal.reason : error;
  } finally {
    timer.cancel();
    deps.limiter.release();
  }
}

async function* stateless(
  idempotent: IdempotentTurn | undefined,
  agent: Agent,
  request: TurnRequest,
  signal: AbortSignal,
  deps: TurnDependencies,
): AsyncGenerator<readonly AgentEvent[]> {
  if (!mayMixCalls(agent)) {
    yield* intercepted(agent, makeTurn(agent, request, request.messages, signal, deps), idempotent, deps);
    return;
  }
  const pending = new PendingCalls(deps.stores.one(), agent.name, request.principal);
  const messages = await deps.storeCall(() => pending.expand(request.messages), 'pendingToolCalls.load');
  const turn = makeTurn(agent, request, messages, signal, deps);
  const transcript = new Transcript();
  const calls: AgentEvent[] = [];
  for await (const batch of intercepted(agent, turn, idempotent, deps)) {
    transcript.add(batch);
    calls.push(...batch.filter(({ type }) => type === 'tool-call'));
    if (batch.at(-1)?.type === 'finished') {
      await deps.storeCall(() => pending.save(messages, transcript.messages(), calls), 'pendingToolCalls.save');
    }
    yield batch;
  }
}

async function* inSession(
  history: SessionHistory,
  idempotent: IdempotentTurn | undefined,
  agent: Agent,
  request: TurnRequest,
  signal: AbortSignal,
  deps: TurnDependencies,
): AsyncGenerator<readonly AgentEvent[]> {
  const { id, store } = history;
  const { policy } = agent.history;
  await deps.tools.settled(id, signal);
  const stored = await deps.storeCall(() => history.current(), 'load', id);
  assertNotFull(stored);
  const { system, added } = newMessages(stored.messages, request.messages);
  const toolbox = await deps.toolboxes.of(agent.tools, signal);
  const tools = agent.clientTools === 'passthrough' ? [...toolbox.declarations, ...request.clientTools] : toolbox.declarations;
  const budget = historyBudget(agent.history, tokensLeft(agent, request, [...system, ...added], tools));
  const view = historyView(stored, added, policy, budget);
  const turn = makeTurn(agent, request, [...system, ...view], signal, deps);
  await deps.storeCall(() => store.begin(id, { turnId: turn.id, input: added }), 'begin', id);
  let isKept = false;
  try {
    const due = history.maySummarize(stored) ? dueSummary(stored, added, policy, budget) : undefined;
    const made = due && (await summarize(history, stored, due, agent, deps.models, deps.storeCall, signal));
    const basis = made?.stored ?? stored;
    const seen = made ? { ...turn, messages: [...system, ...historyView(basis, added, policy, budget)] } : turn;
    const transcript = new Transcript();
    for await (const events of intercepted(agent, seen, idempotent, deps)) {
      const batch = made ? withUsage(events, made.usage) : events;
      idempotent?.add(batch);
      transcript.add(batch);
      const last = batch.at(-1);
      if (last?.type !== 'finished') {
        yield batch;
        continue;
      }
      // Whoever sees the turn finished can rely on it being kept.
      if (batch.length > 1) yield batch.slice(0, -1);
      signal.throwIfAborted();
      const messages = [...added, ...transcript.messages()];
      const commit = { turnId: turn.id, messages, user: request.session?.user, idempotency: idempotent?.answer() };
      await deps.storeCall(() => history.commit(basis, commit), 'commit', id);
      isKept = true;
      idempotent?.end();
      yield [last];
    }
  } finally {
    // A store that cannot even take a turn back finds it when it is opened again.
    if (!isKept) await deps.storeCall(() => store.abandon(id, turn.id), 'abandon', id).catch(() => {});
  }
}

/**
 * Tokens that are left for what was said before, when everything else that the model is sent has
 * its place, and its answer too.
 */
function tokensLeft(agent: Agent, request: TurnRequest, messages: readonly Message[], tools: readonly ToolDeclaration[]): number {
  const params = mergeParams(agent.params, request.params, false);
  const answer = answerTokens(params, agent.contextWindow);
  const prompt = messages[0]?.role === 'system' ? 0 : estimate(agent.system ?? '');
  return messages.reduce((left, message) => left - tokensOf(message), agent.contextWindow - answer - prompt - tokensOf(tools));
}

/**
 * What a turn is said to have used holds what was used before its first step. The agent's budgets
 * do not count that: they would end the very turns that need a summary.
 */
function withUsage(batch: readonly AgentEvent[], before: Usage): readonly AgentEvent[] {
  const last = batch.at(-1);
  return last?.type === 'finished' ? [...batch.slice(0, -1), { ...last, usage: addUsage(before, last.usage) }] : batch;
}

/** The loop inside its interceptors, as they are now: a turn keeps those that it began with. */
function intercepted(agent: Agent, turn: Turn, idempotent: IdempotentTurn | undefined, deps: TurnDependencies): AgentEvents {
  const interceptors = deps.interceptors.all();
  const from = (index: number, current: Turn): AgentEvents => {
    const interceptor = interceptors[index];
    if (interceptor) return interceptor.value(current, (next) => from(index + 1, next));
    const events = runLoop(agent, current, deps);
    return idempotent ? idempotent.guard(events, turn.signal) : events;
  };
  return from(0, turn);
}

function makeTurn(
  agent: Agent,
  request: TurnRequest,
  messages: readonly Message[],
  signal: AbortSignal,
  deps: TurnDependencies,
): Turn {
  const takesTools = agent.clientTools === 'passthrough';
  return {
    id: `turn_${deps.ids.base62(20)}`,
    agent: agent.name,
    principal: request.principal,
    session: request.session && `api:${request.session.key}`,
    messages,
    clientTools: takesTools ? request.clientTools : [],
    params: mergeParams(agent.params, request.params, takesTools),
    incremental: request.incremental,
    requestId: request.requestId,
    metadata: request.metadata,
    signal,
  };
}

/** Whether calls for the caller and calls that run here can mix in one step. */
function mayMixCalls(agent: Agent): boolean {
  return agent.tools.length > 0 && agent.clientTools === 'passthrough';
}

function outOfTime(agent: Agent): TurnError {
  return new TurnError('timed_out', `The agent did not finish within ${agent.timeout / 1000} s.`);
}
