import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Message } from '@plugboard/kernel';
import t from 'tap';
import { seeded } from '../../../test/chaos/seeded.js';
import { openStore, session } from './opened.js';
import { turnsIn } from './told-turns.js';

const CHILD = fileURLToPath(new URL('fixtures/crashing.mjs', import.meta.url));
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'];
const ROUNDS = process.env.PLUGBOARD_CHAOS ? 200 : 15;
/** Every time the same kills, as far as the machine lets them be. */
const SEED = 63;

/** Milliseconds for all rounds, for this file and for its one test. */
const LIMIT = ROUNDS * 5_000;
t.setTimeout(LIMIT);

/** A turn as the child's are. */
function turnNumber(n: number): readonly Message[] {
  return [1, 2].map((i) => ({ role: i === 1 ? 'user' : 'assistant', content: `turn ${n} message ${i} of 2` }));
}

/** Lets a child run turns, kills it at a random point, and gives what it had been told is kept. */
async function killedChild(path: string, round: number, random: () => number): Promise<readonly string[]> {
  const child = spawn(process.execPath, [CHILD, path, String(round), ...KEYS], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  // Some lives are counted in turns, so that the kill follows close upon one; the others in time, so that it comes anywhere.
  const turns = random() < 0.5 ? Math.floor(random() * 60) : Number.POSITIVE_INFINITY;
  const time = random() * 120;
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (output === '' && turns === Number.POSITIVE_INFINITY) setTimeout(() => child.kill('SIGKILL'), time);
    output += text;
    if (output.split('\n').length - 2 > turns) child.kill('SIGKILL');
  });
  const [, signal] = await ended;
  if (signal !== 'SIGKILL') throw new Error(`the child of round ${round} ended by itself`);
  return output.split('\n').slice(1, -1);
}

t.test(`R-063 a process that is killed ${ROUNDS} times loses no turn that it told of, and leaves no half`, async (t) => {
  t.setTimeout(LIMIT);
  const folder = t.testdir();
  const random = seeded(SEED);
  const journal = new Map(KEYS.map((key) => [key, 0]));
  const told = new Set<string>();
  const sum = { rounds: 0, acknowledged: 0, 'kept unacknowledged': 0, interrupted: 0, lost: 0, duplicated: 0 };

  for (let round = 1; round <= ROUNDS; round++) {
    for (const line of await killedChild(join(folder, 'sessions.db'), round, random)) {
      const [key = '', turn] = line.split(' ');
      journal.set(key, Number(turn));
      sum.acknowledged++;
    }
    const { store, database, close } = openStore(folder);
    const interrupted = await store.recover();
    sum.interrupted += interrupted.length;
    for (const { id, turnId, input } of interrupted) {
      if (told.has(turnId)) t.fail(`${turnId} was told twice`);
      told.add(turnId);
      t.match(
        input,
        [{ content: new RegExp(`^turn ${(await store.version(id)) + 1} message 1 of`) }],
        'the input of the next turn',
      );
    }
    for (const key of KEYS) {
      const acknowledged = journal.get(key) ?? 0;
      const { version, messages } = await store.load(session(key));
      const turns = turnsIn(messages);
      const expected = Array.from({ length: version }, (_, i) => i + 1);
      t.same(turns, expected, `round ${round}, ${key}: the turns from 1 to the version, in order and whole`);
      t.ok(
        version === acknowledged || version === acknowledged + 1,
        `round ${round}, ${key}: ${acknowledged} acknowledged, ${version} kept`,
      );
      sum.lost += Math.max(0, acknowledged - new Set(turns).size);
      sum.duplicated += turns.length - new Set(turns).size;
      sum['kept unacknowledged'] += version - acknowledged;
      await store.commit(session(key), { expected: version, messages: turnNumber(version + 1) });
      journal.set(key, version + 1);
    }
    t.same(database.prepare('PRAGMA integrity_check').all(), [{ integrity_check: 'ok' }]);
    close();
    sum.rounds++;
  }
  t.comment(JSON.stringify(sum));
  t.match(sum, { rounds: ROUNDS, lost: 0, duplicated: 0 });
  t.ok(sum.acknowledged > ROUNDS && sum.interrupted > 0, 'the children had something to lose');
});
