import fc from 'fast-check';
import t from 'tap';
import { LENGTH, rounds } from '../support/rounds.js';
import type { Verdict } from './checker.js';
import { type Move, SessionGame } from './session-game.js';

const RUNS = rounds({ short: 60, long: 500, soak: 2_000 });
/** The same games every time, but where there is time for others: what fails then says its seed. */
const SEED = LENGTH === 'short' ? 83 : undefined;
const LIMIT = 60_000 + RUNS * 500;
t.setTimeout(LIMIT);

/**
 * How often each move comes up, against the others. A new move of the game needs a weight here, and
 * is played.
 */
const WEIGHTS: Readonly<Record<Move, number>> = {
  send: 8,
  goOn: 14,
  interrupt: 4,
  drop: 3,
  slow: 3,
  release: 4,
  wait: 4,
  evict: 2,
  crash: 1,
  reopen: 1,
  cancel: 2,
  delete: 2,
  fork: 2,
};

const move = fc.record({
  name: fc.oneof(...Object.entries(WEIGHTS).map(([name, weight]) => ({ weight, arbitrary: fc.constant(name as Move) }))),
  which: fc.nat(99),
  what: fc.nat(99),
  /** Whether time is left for what the move sets off, before the next one. */
  rests: fc.boolean(),
});

t.test(`R-078 R-083 ${RUNS} random games with sessions keep exactly the acknowledged turns`, async (t) => {
  t.setTimeout(LIMIT);
  const sum = { acknowledged: 0, keptUnacknowledged: 0, keptInput: 0 };
  await fc.assert(
    fc.asyncProperty(fc.array(move, { minLength: 1, maxLength: 60, size: 'max' }), async (moves) => {
      const game = await SessionGame.begin();
      for (const { name, which, what, rests } of moves) {
        await game.moves[name](which, what);
        if (rests) faultless(await game.verdict(), `after ${name}`);
      }
      await game.finish();
      const { acknowledged, keptUnacknowledged, keptInput } = faultless(await game.verdict(), 'in the end');
      sum.acknowledged += acknowledged;
      sum.keptUnacknowledged += keptUnacknowledged;
      sum.keptInput += keptInput;
    }),
    { numRuns: RUNS, ...(SEED !== undefined && { seed: SEED }) },
  );
  t.comment(JSON.stringify({ runs: RUNS, ...sum }));
  t.ok(sum.acknowledged > RUNS);
});

/** @throws Error where there are faults. */
function faultless(verdict: Verdict, when: string): Verdict {
  const { lost, duplicated, half, disordered, unasked, invalid } = verdict;
  const faults = Object.entries({ lost, duplicated, half, disordered, unasked, invalid }).filter(([, all]) => all.length > 0);
  if (faults.length > 0) throw new Error(`${when}: ${JSON.stringify(Object.fromEntries(faults))}`);
  return verdict;
}
