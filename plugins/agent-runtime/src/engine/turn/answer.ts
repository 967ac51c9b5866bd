import type { Contribution, Interceptor, Turn } from '@plugboard/kernel';
import { type AgentEvents, addUsage, Transcript } from '@plugboard/kernel/contracts';
import { type Batch, endOf, type TurnEnd, untilEnd } from '../log/batch.js';
import { pulled, type WriteBatch } from '../log/pulled.js';
import type { BegunTurn, TurnContext } from './conversation.js';
import { assertBatch, endedEarly, eventsOf } from './interceptor-errors.js';
import { runLoop } from './loop.js';

/** The answer of a turn, of which the readers have received everything but the last batch. */
export interface Answer {
  /** The last batch, which ends with `end`. */
  readonly last: Batch;
  readonly end: TurnEnd;
  /** What the readers have received, as messages. */
  readonly transcript: Transcript;
}

/**
 * Runs the agent loop and its interceptors, and writes their events to the readers, up to the last
 * batch.
 *
 * @throws TurnError, or another error, which is a defect.
 */
export async function answer(context: TurnContext, begun: BegunTurn): Promise<Answer> {
  const { task, revision, parent } = context;
  const { usage, pending } = begun;
  if (usage) parent?.options.use.add(usage);
  const transcript = new Transcript();
  task.transcript = transcript;
  let answered: Answer | undefined;
  const finish = (batch: Batch, end: TurnEnd): undefined => {
    // Tokens that were used before the first step are reported, but the agent's limits do not count
    // them.
    const total = usage && end.type === 'finished' ? { ...end, usage: addUsage(usage, end.usage) } : end;
    task.idempotent?.add(batch.slice(0, -1));
    const last = total === end ? batch : [...batch.slice(0, -1), total];
    task.recorder?.add(last);
    answered = { last, end: total, transcript };
  };
  const write = (batch: Batch) => {
    const end = endOf(batch);
    if (end) return finish(batch, end);
    task.idempotent?.add(batch);
    task.recorder?.add(batch);
    transcript.add(batch);
    return task.write(batch);
  };

  const interceptors = revision.interceptors.all();
  if (interceptors.length === 0) await runLoop(context, begun, transcript, write);
  else {
    for await (const batch of intercepted(context, begun, interceptors)) {
      assertBatch(interceptors, batch);
      const events = untilEnd(batch);
      await write(pending?.reportedOnce(events) ?? events);
      if (answered) break;
    }
  }
  if (!answered) throw endedEarly(interceptors);
  return answered;
}

/** Wraps the agent loop in the interceptors that the turn began with. */
function intercepted(context: TurnContext, begun: BegunTurn, interceptors: readonly Contribution<Interceptor>[]): AgentEvents {
  const from = (index: number, current: Turn): AgentEvents => {
    const interceptor = interceptors[index];
    if (!interceptor) return pulled((write) => innerLoop(context, { ...begun, turn: current }, write));
    const returned = interceptor.value(current, (next) => from(index + 1, next));
    return eventsOf(interceptor.entry, returned);
  };
  return from(0, begun.turn);
}

/** The loop inside of interceptors. Its own transcript has what it wrote before they changed it. */
function innerLoop(context: TurnContext, begun: BegunTurn, write: WriteBatch): Promise<void> {
  const transcript = new Transcript();
  return runLoop(context, begun, transcript, (batch) => {
    transcript.add(batch);
    return write(batch);
  });
}
