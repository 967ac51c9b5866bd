import type { Clock, IdSource } from '../host/ambient.js';
import type { Extensions } from '../host/extension-point.js';
import type { Agent } from './agent.js';
import { begin } from './diagnostics.js';
import { type AgentEvent, type AgentEvents, TurnError } from './event.js';
import { type LoopParts, runLoop } from './loop.js';
import type { Message } from './message.js';
import { layParams } from './parameters.js';
import { park, toPark, unpark } from './parked-calls.js';
import type { TurnRequest } from './points/agent-runtime.js';
import type { Interceptor } from './points/interceptor.js';
import type { SessionId, SessionStore } from './points/session-store.js';
import { contribute } from './session-input.js';
import type { Sessions } from './sessions.js';
import { Transcript } from './transcript.js';
import type { Turn } from './turn.js';
import type { Turnstile } from './turnstile.js';

export interface TurnParts extends LoopParts {
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly gate: Turnstile;
  readonly sessions: Sessions;
  readonly stores: Extensions<SessionStore>;
  readonly interceptors: Extensions<Interceptor>;
}

/**
 * One turn, from its place in the queue to its end: behind the earlier turns of its session, within the process's limit, with the session's history, through the interceptors, and
 * committed before anyone is told that it has finished.
 *
 * @param abort aborted by whoever ends the turn early, with what the caller is to be told as the reason; and here, when the agent's time is over.
 * @throws TurnError, or whatever a defect throws.
 */
export async function* runTurn(
  agent: Agent,
  request: TurnRequest,
  abort: AbortController,
  parts: TurnParts,
): AsyncGenerator<readonly AgentEvent[]> {
  const { signal } = abort;
  const session = sessionOf(agent, request);
  const leaveSession = session && (await parts.sessions.enter(session, signal));
  try {
    await parts.gate.enter(signal);
    const timer = parts.clock.after(agent.timeout, () => abort.abort(outOfTime(agent)));
    try {
      if (session) yield* inSession(session, agent, request, signal, parts);
      else yield* stateless(agent, request, signal, parts);
    } catch (error) {
      // What breaks off because the turn was ended early is not the reason, but its consequence.
      throw signal.aborted ? signal.reason : error;
    } finally {
      timer.cancel();
      parts.gate.leave();
    }
  } finally {
    leaveSession?.();
  }
}

async function* stateless(
  agent: Agent,
  request: TurnRequest,
  signal: AbortSignal,
  parts: TurnParts,
): AsyncGenerator<readonly AgentEvent[]> {
  if (!mayPark(agent, request))
    return yield* intercepted(agent, makeTurn(agent, request, request.messages, signal, parts), parts);

  const store = parts.stores.one();
  const owner = { project: request.principal.project, agent: agent.name };
  const turn = makeTurn(agent, request, await keep(() => unpark(store, owner, request.messages), 'unpark'), signal, parts);
  const transcript = new Transcript();
  const calls: AgentEvent[] = [];
  for await (const batch of intercepted(agent, turn, parts)) {
    transcript.add(batch);
    calls.push(...batch.filter(({ type }) => type === 'tool-call'));
    if (batch.at(-1)?.type === 'finished') {
      const handedOut = toPark(calls);
      if (handedOut.length > 0) await keep(() => park(store, owner, turn.messages, transcript.messages(), handedOut), 'park');
    }
    yield batch;
  }
}

async function* inSession(
  id: SessionId,
  agent: Agent,
  request: TurnRequest,
  signal: AbortSignal,
  parts: TurnParts,
): AsyncGenerator<readonly AgentEvent[]> {
  const store = parts.stores.one();
  const stored = await keep(() => store.load(id), 'load', id);
  const input = contribute(stored.messages, request.messages);
  const turn = makeTurn(agent, request, input.messages, signal, parts);
  const transcript = new Transcript();
  for await (const batch of intercepted(agent, turn, parts)) {
    transcript.add(batch);
    const last = batch.at(-1);
    if (last?.type !== 'finished') {
      yield batch;
      continue;
    }
    // Whoever sees the turn finished can rely on it being kept.
    if (batch.length > 1) yield batch.slice(0, -1);
    signal.throwIfAborted();
    const messages = [...input.added, ...transcript.messages()];
    await keep(() => store.commit(id, { expected: stored.version, messages }), 'commit', id);
    yield [last];
  }
}

/** The loop inside its interceptors, as they are now: a turn keeps those that it began with. */
function intercepted(agent: Agent, turn: Turn, parts: TurnParts): AgentEvents {
  const interceptors = parts.interceptors.all();
  const from = (index: number, current: Turn): AgentEvents => {
    const interceptor = interceptors[index];
    return interceptor ? interceptor.value(current, (next) => from(index + 1, next)) : runLoop(agent, current, parts);
  };
  return from(0, turn);
}

function makeTurn(agent: Agent, request: TurnRequest, messages: readonly Message[], signal: AbortSignal, parts: TurnParts): Turn {
  const takesTools = agent.clientTools === 'passthrough';
  return {
    id: `turn_${parts.ids.base62(20)}`,
    agent: agent.name,
    principal: request.principal,
    session: request.session === undefined ? undefined : `api:${request.session}`,
    messages,
    clientTools: takesTools ? request.clientTools : [],
    params: layParams(agent.params, request.params, takesTools),
    incremental: request.incremental,
    requestId: request.requestId,
    metadata: request.metadata,
    signal,
  };
}

/** Only from the credential comes the project; the agent's name keeps two agents apart, whatever the key. */
function sessionOf(agent: Agent, { session, principal }: TurnRequest): SessionId | undefined {
  return session === undefined ? undefined : { project: principal.project, agent: agent.name, key: session };
}

/** Calls for the caller and calls that run here can only mix where there are tools of both kinds. */
function mayPark(agent: Agent, request: TurnRequest): boolean {
  return agent.tools.length > 0 && agent.clientTools === 'passthrough' && request.clientTools.length > 0;
}

async function keep<T>(work: () => Promise<T>, operation: string, session?: SessionId): Promise<T> {
  const span = begin('store', () => ({ operation, session }));
  try {
    const result = await work();
    span.end();
    return result;
  } catch (error) {
    span.fail(error);
    throw new TurnError('store_failed', 'The session store failed; the turn was not kept.', { cause: error });
  }
}

function outOfTime(agent: Agent): TurnError {
  return new TurnError('timed_out', `The agent did not finish within ${agent.timeout / 1000} s.`);
}
