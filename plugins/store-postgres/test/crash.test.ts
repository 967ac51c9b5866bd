import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Message } from '@plugboard/kernel';
import t from 'tap';
import { rounds } from '../../../test/support/rounds.js';
import { seeded } from '../../../test/support/seeded.js';
import { turnNumbers } from '../../../test/support/turn-numbers.js';
import { endLease, newSchema, openStore, SYSTEM_CLOCK, session } from './open-store.js';
import { realPostgres } from './real-postgres.js';

const CHILD = fileURLToPath(new URL('fixtures/crashing.mjs', import.meta.url));
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'];
const ROUNDS = rounds({ short: 4, long: 40, soak: 200 });
/** Makes the kills repeatable, as far as timing allows. */
const SEED = 63;

/** Time limit of all rounds in milliseconds, for the file and its one test. */
const LIMIT = 60_000 + ROUNDS * 8_000;
t.setTimeout(LIMIT);

/** A turn like those of the child. */
function turnNumber(n: number): readonly Message[] {
  return [1, 2].map((i) => ({ role: i === 1 ? 'user' : 'assistant', content: `turn ${n} message ${i} of 2` }));
}

/** Kills the child at a random point, and returns the commits that were acknowledged. */
async function killed(child: ChildProcess, round: number, random: () => number): Promise<readonly string[]> {
  const ended = once(child, 'close');
  // Half of the kills follow closely after a turn; the others come at any time.
  const turns = random() < 0.5 ? Math.floor(random() * 60) : Number.POSITIVE_INFINITY;
  const time = random() * 300;
  let output = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    if (output === '' && turns === Number.POSITIVE_INFINITY) setTimeout(() => child.kill('SIGKILL'), time);
    output += text;
    if (output.split('\n').length - 2 > turns) child.kill('SIGKILL');
  });
  const [, signal] = await ended;
  if (signal !== 'SIGKILL') throw new Error(`the child of round ${round} ended by itself`);
  return output.split('\n').slice(1, -1);
}

t.test(`R-063 a process that is killed ${ROUNDS} times loses no acknowledged turn and leaves no half`, async (t) => {
  t.setTimeout(LIMIT);
  const { url } = await realPostgres();
  const schema = newSchema();
  const random = seeded(SEED);
  const journal = new Map(KEYS.map((key) => [key, 0]));
  const recovered = new Set<string>();
  const sum = { rounds: 0, acknowledged: 0, 'stored unacknowledged': 0, interrupted: 0, lost: 0, duplicated: 0 };

  for (let round = 1; round <= ROUNDS; round++) {
    const child = spawn(process.execPath, [CHILD, url(), schema, String(round), ...KEYS], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    for (const line of await killed(child, round, random)) {
      const [key = '', turn] = line.split(' ');
      journal.set(key, Number(turn));
      sum.acknowledged++;
    }
    await endLease(schema);
    const { store, query, close } = await openStore({ schema, clock: SYSTEM_CLOCK });
    const interrupted = await store.recover();
    sum.interrupted += interrupted.length;
    for (const { id, turnId, input } of interrupted) {
      if (recovered.has(turnId)) t.fail(`${turnId} was recovered twice`);
      recovered.add(turnId);
      const next = new RegExp(`^turn ${(await store.version(id)) + 1} message 1 of`);
      t.match(input, [{ content: next }], 'the input of the next turn');
      await store.abandon(id, turnId);
    }
    for (const key of KEYS) {
      const acknowledged = journal.get(key) ?? 0;
      const { version, messages } = await store.load(session(key));
      const turns = turnNumbers(messages);
      const expected = Array.from({ length: version }, (_, i) => i + 1);
      t.same(turns, expected, `round ${round}, ${key}: the turns from 1 to the version, in order and whole`);
      const isAllowed = version === acknowledged || version === acknowledged + 1;
      t.ok(isAllowed, `round ${round}, ${key}: ${acknowledged} acknowledged, ${version} stored`);
      sum.lost += Math.max(0, acknowledged - new Set(turns).size);
      sum.duplicated += turns.length - new Set(turns).size;
      sum['stored unacknowledged'] += version - acknowledged;
      await store.commit(session(key), { expected: version, messages: turnNumber(version + 1) });
      journal.set(key, version + 1);
    }
    const [counted] = await query(COUNTED);
    t.strictSame(counted, { sessions: String(KEYS.length), differs: '0' }, 'the quota counts what is stored');
    await close();
    sum.rounds++;
  }
  t.comment(JSON.stringify(sum));
  t.match(sum, { rounds: ROUNDS, lost: 0, duplicated: 0 });
  t.ok(sum.acknowledged > ROUNDS && sum.interrupted > 0, 'the children had turns to lose');
});

const COUNTED = `SELECT sum(sessions)::text AS sessions, (sum(bytes) - (SELECT sum(octet_length(body)) FROM plugboard.message)
  - (SELECT sum(octet_length(metadata)) FROM plugboard.session))::text AS differs FROM plugboard.usage`;
