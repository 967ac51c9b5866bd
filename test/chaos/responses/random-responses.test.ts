import { ModelServer } from '@plugboard/testing';
import fc from 'fast-check';
import t from 'tap';
import { LENGTH, rounds } from '../../support/rounds.js';
import { Game } from './game.js';
import { type Move, program } from './moves.js';
import { ServerLife, type StoreName } from './server-life.js';

const PROGRAMS = Number(process.env.PLUGBOARD_PROGRAMS ?? rounds({ short: 3, long: 40, soak: 150 }));
/** The same programs every time, but in the soak: a change must not fail for an older fault. */
const SEED = process.env.PLUGBOARD_SEED ?? (LENGTH === 'soak' ? undefined : '32');
/** To play one program again: what a failure prints as its path. */
const PATH = process.env.PLUGBOARD_PATH;
const LIMIT = 60_000 + PROGRAMS * 10_000;
t.setTimeout(LIMIT * 2);

/** Only with this store. */
const STORE = process.env.PLUGBOARD_STORE;

for (const store of ['memory', 'sqlite'] as const satisfies readonly StoreName[]) {
  if (STORE !== undefined && STORE !== store) continue;
  t.test(`C-220 C-231 ${PROGRAMS} random programs of responses do what the reference says, in ${store}`, async (t) => {
    t.setTimeout(LIMIT);
    const models = await ModelServer.start();
    t.teardown(() => models.close());
    const server = new ServerLife(t, store, models.url);
    await server.start();
    const sum = { programs: 0, turns: 0, kept: 0, lives: 0 };
    const play = async (moves: readonly Move[]) => {
      const game = new Game(`p${sum.programs++}`, server, models);
      try {
        await game.play(moves);
      } catch (error) {
        // The next program begins with a server that has nothing left of this one.
        await server.kill();
        await server.start();
        throw error;
      }
      sum.turns += game.counts.turns;
      sum.kept += game.counts.kept;
    };
    await fc.assert(fc.asyncProperty(program, play), {
      numRuns: PROGRAMS,
      // Shrinking plays many more programs: only on request.
      endOnFailure: PATH === undefined,
      ...(SEED !== undefined && { seed: Number(SEED) }),
      ...(PATH !== undefined && { path: PATH }),
    });
    sum.lives = server.life;
    t.comment(JSON.stringify({ store, ...sum }));
    t.ok(sum.kept > PROGRAMS);
    await server.kill();
  });
}
