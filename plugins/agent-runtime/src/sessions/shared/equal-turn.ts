import type { Clock } from '@plugboard/kernel';
import { Account, type Budget, type SharedStore, type Timer, TurnError } from '@plugboard/kernel/contracts';
import { type Batch, contentSize, endOf } from '../../engine/log/batch.js';
import type { TurnTask } from '../../engine/turn/turn-task.js';
import { serverDied } from './remote-turn.js';

/** Milliseconds between two looks for a turn that another server does not show yet. */
const LOOK_EVERY = 1_000;

/** The topic of the events of a turn, for requests that are equal to its own (C-133). */
function topicOf(turnId: string): string {
  return `turn:${turnId}`;
}

/**
 * Offers the events of a turn to equal requests at other servers. Each reads as a reader of the
 * turn does: it keeps the turn running, and slows it down.
 */
export function offerEvents(turn: TurnTask, shared: SharedStore, memory: Budget): void {
  if (turn.fingerprint === undefined) return;
  const { principal } = turn.request;
  turn.defer(shared.offer(topicOf(turn.turnId), (signal) => textsOf(turn.join(signal, new Account(memory, principal)))));
}

async function* textsOf(batches: AsyncIterable<Batch>): AsyncGenerator<string> {
  yield '[]'; // it is there, and may have to wait
  for await (const batch of batches) yield JSON.stringify(batch);
}

/**
 * Finds the turn of an equal request at another server.
 *
 * @returns the phases of this turn, which has the events of that one; undefined if it has ended.
 * @throws the reason of this turn's signal, or an error of the store.
 */
export async function equalTurn(
  turn: TurnTask,
  turnId: string,
  { shared, clock }: { readonly shared: SharedStore; readonly clock: Clock },
): Promise<(() => Promise<void>) | undefined> {
  const stop = new AbortController();
  const signal = AbortSignal.any([turn.signal, stop.signal]);
  const texts = shared.read(topicOf(turnId), signal)[Symbol.asyncIterator]();
  const { project } = turn.request.principal;
  let isGone = false;
  let timer: Timer;
  const lookLater = () => {
    timer = clock.after(LOOK_EVERY, async () => {
      if (isGone) return stop.abort(); // its last texts have had the time to arrive
      isGone = (await shared.findTurn(project, turnId).catch(() => undefined)) === undefined;
      lookLater();
    });
    return () => timer.cancel();
  };
  const stopLooking = lookLater();
  try {
    const first = await texts.next();
    turn.signal.throwIfAborted();
    if (first.done || first.value.text === undefined) return undefined;
  } finally {
    stopLooking();
  }
  return () => follow(turn, texts, () => stop.abort());
}

/** Never rejects. */
async function follow(turn: TurnTask, texts: AsyncIterator<{ readonly text?: string }>, leave: () => void): Promise<void> {
  try {
    while (!turn.hasEnded) {
      const next = await texts.next();
      turn.signal.throwIfAborted();
      if (next.done || next.value.text === undefined) throw serverDied();
      await take(turn, JSON.parse(next.value.text) as Batch);
    }
  } catch (error) {
    await turn.fail(error instanceof TurnError ? error : serverDied(error));
  } finally {
    leave();
    turn.settled();
  }
}

async function take(turn: TurnTask, batch: Batch): Promise<void> {
  turn.account.require(Account.costOf(contentSize(batch)));
  const end = endOf(batch);
  if (end?.type === 'finished') turn.finish(batch);
  else if (end) await turn.failWith(end);
  else await turn.write(batch);
}
