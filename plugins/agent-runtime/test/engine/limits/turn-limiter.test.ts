import type { Principal } from '@plugboard/kernel';
import { testContext } from '@plugboard/testing';
import t from 'tap';
import { TurnLimiter } from '../../../src/engine/limits/turn-limiter.js';
import definition from '../../../src/index.js';

interface Game {
  readonly limiter: TurnLimiter;
  /**
   * The names of the turns that got a permit, in that order, and of those that were rejected:
   * `!name`.
   */
  readonly seen: string[];
  enter(owner: Principal, name: string, signal?: AbortSignal): void;
}

function game(runningTurns: number, queuedTurns: number, shares: { project?: number; caller?: number } = {}): Game {
  const { project: runningTurnsPerProject = runningTurns, caller: runningTurnsPerCaller = runningTurns } = shares;
  const limits = { runningTurns, queuedTurns, runningTurnsPerProject, runningTurnsPerCaller };
  const limiter = new TurnLimiter(testContext(definition, { config: { limits } }));
  const seen: string[] = [];
  const enter = (owner: Principal, name: string, signal = new AbortController().signal) => {
    try {
      const queued = limiter.acquire(owner, signal);
      if (!queued) seen.push(name);
      else
        queued.then(
          () => seen.push(name),
          () => seen.push(`!${name}`),
        );
    } catch {
      seen.push(`!${name}`);
    }
  };
  return { limiter, seen, enter };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
const owner = (project: string, tokenId?: string): Principal => ({ project, scopes: [], tokenId });
const [A, A1, A2, B] = [owner('a'), owner('a', '1'), owner('a', '2'), owner('b')];

t.test('S-41 a free permit goes to the project, then to the caller, with the fewest', async (t) => {
  const { limiter, seen, enter } = game(3, 10);
  for (const name of ['a1', 'a2', 'a3', 'a4', 'a5']) enter(A1, name);
  enter(A2, 'other caller');
  for (const name of ['b1', 'b2']) enter(B, name);
  t.same(seen, ['a1', 'a2', 'a3']);
  for (const from of [A1, A1, A1]) limiter.release(from);
  await settled();
  t.same(seen.splice(0), ['a1', 'a2', 'a3', 'b1', 'other caller', 'b2'], 'the project first, then the caller');
  for (const from of [B, B, A2]) limiter.release(from);
  await settled();
  t.same(seen, ['a4', 'a5'], 'and what is left goes in order of arrival');
});

t.test('S-41 equal projects and callers get permits in turn', async (t) => {
  const { limiter, seen, enter } = game(1, 10);
  enter(A, 'first');
  for (const at of [1, 2]) for (const from of [A, B]) enter(from, `${from.project}${at}`);
  for (const from of [A, A, B, A]) {
    limiter.release(from);
    await settled();
  }
  t.same(seen, ['first', 'a1', 'b1', 'a2', 'b2']);
});

t.test('S-41 a project or a caller at its share waits while there are permits', async (t) => {
  const { limiter, seen, enter } = game(4, 10, { project: 3, caller: 2 });
  for (const name of ['1', '2', '3']) enter(A1, name);
  enter(A2, 'other caller');
  enter(A2, 'beyond the project');
  enter(B, 'other project');
  t.same(seen, ['1', '2', 'other caller', 'other project']);
  limiter.release(A2);
  await settled();
  t.same(seen.splice(4), ['beyond the project'], 'the caller with the fewest comes first');
  limiter.release(B);
  limiter.release(A1);
  await settled();
  t.same(seen.splice(4), ['3']);
});

t.test('S-41 a caller without an identity has no share of its own', async (t) => {
  const { seen, enter } = game(4, 10, { caller: 1 });
  for (const name of ['1', '2', '3', '4']) enter(A, name);
  t.equal(seen.length, 4);
});

t.test('S-41 a newcomer displaces the newest waiter of the longest queue, until the queues are equal', async (t) => {
  const { limiter, seen, enter } = game(1, 4);
  enter(A1, 'running');
  for (const name of ['1', '2', '3', '4']) enter(A1, name);
  enter(A1, 'too many');
  enter(B, 'b1');
  await settled();
  t.same(seen.splice(0), ['running', '!too many', '!4']);
  enter(B, 'b2');
  enter(B, 'b3');
  await settled();
  t.same(seen.splice(0), ['!b3', '!3'], 'the thrown rejection comes first; b3 found two and two');
  enter(A2, 'other caller');
  await settled();
  t.same(seen.splice(0), ['!2'], 'both projects have two: its colleague gives way');
  limiter.release(A1);
  await settled();
  t.same(seen, ['1']);
});

t.test('S-41 within a project the queue is shared between its callers', async (t) => {
  const { seen, enter } = game(1, 4);
  enter(A1, 'running');
  for (const name of ['1', '2', '3', '4']) enter(A1, name);
  for (const name of ['x', 'y', 'z']) enter(A2, name);
  await settled();
  t.same(seen, ['running', '!z', '!4', '!3']);
});

t.test('a turn that is aborted leaves the queue, also one that was aborted before', async (t) => {
  const { limiter, seen, enter } = game(1, 1);
  const abort = new AbortController();
  enter(A, 'running');
  enter(A, 'leaves', abort.signal);
  abort.abort();
  enter(A, 'gone before', AbortSignal.abort());
  enter(A, 'stays');
  limiter.release(A);
  await settled();
  t.same(seen, ['running', '!leaves', '!gone before', 'stays']);
  limiter.release(A);
  enter(A, 'next');
  t.equal(seen.at(-1), 'next');
});
