import { TurnError } from '@plugboard/kernel/contracts';
import { startSpan } from '../diagnostics/channels.js';
import { type Agent, agentForRequest } from '../directory/agent.js';
import type { TurnEnd } from '../log/batch.js';
import { type Answer, answer } from './answer.js';
import type { OpenConversation, TurnConversation } from './conversation.js';
import type { TurnContext, TurnDependencies } from './turn-context.js';
import { TurnRecorder } from './turn-recorder.js';
import type { TurnTask } from './turn-task.js';

/**
 * Runs a turn: its phases in their order. Never rejects: every failure ends the turn.
 *
 * @param open opens the conversation, once the turn is admitted. No other turn uses it until this
 *   one has ended or is overdue.
 */
export async function runTurn(task: TurnTask, open: OpenConversation, deps: TurnDependencies): Promise<void> {
  const span = startSpan('turn', () => ({ request: task.request }));
  task.defer(() => {
    if (task.isOverdue) deps.failures.overdue(task.signal.reason, task.request);
    span.set(task.terminal ? outcomeOf(task.terminal) : {});
    span.end();
  });
  try {
    const context = await admit(task, deps);
    const keepsReasoning = task.request.session !== undefined && context.agent.toolVisibility === 'full';
    task.recorder = new TurnRecorder({ arrivedAt: task.arrivedAt, clock: deps.clock }, keepsReasoning, task.request.id);
    const conversation = open(context);
    const loaded = await conversation.load();
    try {
      const earlierTools = deps.tools.settled(loaded);
      if (earlierTools) await earlierTools;
      const begun = await conversation.begin(loaded);
      const answered = await answer(context, begun);
      if (answered.end.type === 'finished') await commit(context, conversation, answered);
      else {
        await conversation.abandon();
        await task.failWith(answered.end);
      }
    } catch (error) {
      await conversation.abandon();
      throw error;
    }
  } catch (error) {
    // After an abort, errors are consequences of it.
    const cause = task.signal.aborted ? task.signal.reason : error;
    if (!task.hasEnded) deps.failures.log(cause, task.request);
    await task.fail(cause);
  } finally {
    task.settled();
  }
}

/**
 * Admits the turn: within the limits of its credential, of its project and of the server. What it
 * takes is given back when the turn has ended.
 */
async function admit(task: TurnTask, deps: TurnDependencies): Promise<TurnContext> {
  const { signal } = task;
  const { principal } = task.request;
  if (deps.host.phase === 'stopping') throw new TurnError('draining', 'The server is stopping.', { retryAfter: 1 });
  task.defer(deps.pin());
  task.defer(deps.credentials.acquire(principal));
  // A reload may have replaced the target since it was resolved, for example while the turn was in
  // the queue.
  const target = deps.targetOf(task.request);
  const request = target === task.request.target ? task.request : { ...task.request, target };
  const agent = agentForRequest(request);
  const owner = { project: principal.project, caller: principal.tokenId };
  const queued = deps.limiter.acquire(owner, signal);
  if (queued) await queued;
  task.defer(() => deps.limiter.release(owner));
  const timer = deps.clock.after(agent.timeout, () => task.requestEnd(outOfTime(agent)));
  task.defer(() => timer.cancel());
  return { task, agent, request, signal, deps };
}

/** Stores the answer, if anything keeps it, and ends the turn. */
async function commit({ task }: TurnContext, conversation: TurnConversation, { last, end, transcript }: Answer): Promise<void> {
  if (!conversation.isStored && !task.idempotent) return task.finish(last);
  transcript.add(last);
  if (last.length > 1) await task.write(last.slice(0, -1));
  task.beginStoring();
  task.idempotent?.add([end]);
  await conversation.commit(transcript.messages());
  task.finish([end]);
}

function outcomeOf(end: TurnEnd): object {
  return end.type === 'finished' ? { status: end.reason, usage: end.usage } : { status: end.failure.code };
}

function outOfTime(agent: Agent): TurnError {
  return new TurnError('timed_out', `The agent did not finish within ${agent.timeout / 1000} s.`);
}
