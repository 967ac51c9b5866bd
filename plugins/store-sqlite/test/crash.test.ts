import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { playCrashes } from '../../../test/support/crash-game.js';
import { rounds } from '../../../test/support/rounds.js';
import { openStore } from './open-store.js';

const ROUNDS = rounds({ short: 8, long: 60, soak: 200 });
/** Time limit of all rounds in milliseconds, for the file and its one test. */
const LIMIT = ROUNDS * 5_000;
t.setTimeout(LIMIT);

t.test(`R-063 a process that is killed ${ROUNDS} times loses no acknowledged turn and leaves no half`, async (t) => {
  t.setTimeout(LIMIT);
  const folder = t.testdir();
  const program = fileURLToPath(new URL('fixtures/crashing.mjs', import.meta.url));
  const open = () => {
    const { store, database, close } = openStore(folder);
    const check = () => {
      t.same(database.prepare('PRAGMA integrity_check').all(), [{ integrity_check: 'ok' }]);
      close();
    };
    return { store, close: check };
  };
  await playCrashes(t, { rounds: ROUNDS, program, storage: [join(folder, 'sessions.db')], within: 120, open });
});
