import { TurnError } from '@plugboard/kernel/contracts';
import type { TurnConversation } from '../conversation/conversation.js';
import { SessionConversation } from '../conversation/session-conversation.js';
import type { SessionHistory } from '../conversation/session-history.js';
import { StatelessConversation } from '../conversation/stateless-conversation.js';
import { startSpan } from '../diagnostics/channels.js';
import { type Agent, agentForRequest } from '../directory/agent.js';
import type { TurnContext, TurnDependencies } from '../lifecycle/turn-context.js';
import type { TurnRun } from '../lifecycle/turn-run.js';
import type { TurnEnd } from '../streams/batch.js';
import { type Answer, answer } from './answer.js';

/**
 * Runs a turn: its phases in their order. Never rejects: every failure ends the turn.
 *
 * @param history the history of the turn's session, if it has one. No other turn uses it meanwhile.
 */
export async function runTurn(run: TurnRun, history: SessionHistory | undefined, deps: TurnDependencies): Promise<void> {
  const span = startSpan('turn', () => ({ request: run.request }));
  run.defer(() => {
    span.set(run.terminal ? outcomeOf(run.terminal) : {});
    span.end();
  });
  try {
    const context = await admit(run, deps);
    const conversation = history ? new SessionConversation(context, history) : new StatelessConversation(context);
    const loaded = await conversation.load();
    try {
      const begun = await conversation.begin(loaded);
      const answered = await answer(context, begun);
      if (answered.end.type === 'finished') await commit(context, conversation, answered);
      else {
        await conversation.abandon();
        await run.failWith(answered.end);
      }
    } catch (error) {
      await conversation.abandon();
      throw error;
    }
  } catch (error) {
    deps.failures.log(error, run.request);
    await run.fail(error);
  }
}

/**
 * Admits the turn: within the limits of its credential, of its project and of the server. What it
 * takes is given back when the turn has ended.
 */
async function admit(run: TurnRun, deps: TurnDependencies): Promise<TurnContext> {
  const { signal } = run;
  const { principal } = run.request;
  if (deps.host.phase === 'stopping') throw new TurnError('draining', 'The server is stopping.', { retryAfter: 1 });
  run.defer(deps.pin());
  run.defer(deps.credentials.acquire(principal));
  // A reload may have replaced the target since it was resolved, for example while the turn was in
  // the queue.
  const target = deps.targetOf(run.request);
  const request = target === run.request.target ? run.request : { ...run.request, target };
  const agent = agentForRequest(request);
  const owner = { project: principal.project, caller: principal.tokenId };
  const queued = deps.limiter.acquire(owner, signal);
  if (queued) await queued;
  run.defer(() => deps.limiter.release(owner));
  const timer = deps.clock.after(agent.timeout, () => run.end(outOfTime(agent)));
  run.defer(() => timer.cancel());
  return { run, agent, request, signal, deps };
}

/** Stores the answer, if anything keeps it, and ends the turn. */
async function commit({ run }: TurnContext, conversation: TurnConversation, { last, end, transcript }: Answer): Promise<void> {
  if (!conversation.isStored && !run.idempotent) return run.finish(last);
  if (last.length > 1) await run.write(last.slice(0, -1));
  run.beginStoring();
  run.idempotent?.add([end]);
  await conversation.commit(transcript.messages());
  run.finish([end]);
}

function outcomeOf(end: TurnEnd): object {
  return end.type === 'finished' ? { status: end.reason, usage: end.usage } : { status: end.failure.code };
}

function outOfTime(agent: Agent): TurnError {
  return new TurnError('timed_out', `The agent did not finish within ${agent.timeout / 1000} s.`);
}
