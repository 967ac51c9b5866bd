import { fileURLToPath } from 'node:url';
import t from 'tap';
import { playCrashes } from '../../../test/support/crash-game.js';
import { rounds } from '../../../test/support/rounds.js';
import { endLease, newSchema, openStore, SYSTEM_CLOCK } from './open-store.js';
import { realPostgres } from './real-postgres.js';

const ROUNDS = rounds({ short: 4, long: 40, soak: 200 });
/** Time limit of all rounds in milliseconds, for the file and its one test. */
const LIMIT = 60_000 + ROUNDS * 8_000;
t.setTimeout(LIMIT);

t.test(`R-063 a process that is killed ${ROUNDS} times loses no acknowledged turn and leaves no half`, async (t) => {
  t.setTimeout(LIMIT);
  const { url } = await realPostgres();
  const schema = newSchema();
  const program = fileURLToPath(new URL('fixtures/crashing.mjs', import.meta.url));
  const open = async () => {
    await endLease(schema);
    const { store, query, close } = await openStore({ schema, clock: SYSTEM_CLOCK });
    const check = async (sessions: number) => {
      const [counted] = await query(COUNTED);
      t.strictSame(counted, { sessions: String(sessions), differs: '0' }, 'the quota counts what is stored');
      await close();
    };
    return { store, close: check };
  };
  await playCrashes(t, { rounds: ROUNDS, program, storage: [url(), schema], within: 300, open });
});

const COUNTED = `SELECT sum(sessions)::text AS sessions, (sum(bytes) - (SELECT sum(octet_length(body)) FROM plugboard.message)
  - (SELECT sum(octet_length(metadata)) FROM plugboard.session))::text AS differs FROM plugboard.usage`;
