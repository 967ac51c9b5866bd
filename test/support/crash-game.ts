import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Message, SessionStore } from '@plugboard/kernel';
import type { Test } from 'tap';
import { seeded } from './seeded.js';
import { session } from './stored-turns.js';
import { turnNumbers } from './turn-numbers.js';

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'];
/** Makes the kills repeatable, as far as timing allows. */
const SEED = 63;

interface CrashGame {
  readonly rounds: number;
  /** A program that passes a store, the number of its life and keys to `turnsUntilKilled`. */
  readonly program: string;
  /** Its arguments before these: which storage the store has, the same in all rounds. */
  readonly storage: readonly string[];
  /** Milliseconds within which kills come. */
  readonly within: number;
  /** Opens a store over what the killed process left. */
  readonly open: () => Promise<OpenedAfterCrash> | OpenedAfterCrash;
}

interface OpenedAfterCrash {
  readonly store: SessionStore;
  /** Checks the storage of `sessions` sessions, and closes it. */
  readonly close: (sessions: number) => Promise<void> | void;
}

/**
 * Kills a process that runs turns, again and again, at random points. What it acknowledged must be
 * there, each turn whole and once, and what it had begun is recovered once.
 */
export async function playCrashes(t: Test, { rounds, program, storage, within, open }: CrashGame): Promise<void> {
  const random = seeded(SEED);
  const journal = new Map(KEYS.map((key) => [key, 0]));
  const recovered = new Set<string>();
  const sum = { rounds: 0, acknowledged: 0, 'stored unacknowledged': 0, interrupted: 0, lost: 0, duplicated: 0 };

  for (let round = 1; round <= rounds; round++) {
    for (const line of await killed([program, ...storage, String(round), ...KEYS], within, random)) {
      const [key = '', turn] = line.split(' ');
      journal.set(key, Number(turn));
      sum.acknowledged++;
    }
    const { store, close } = await open();
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
    await close(KEYS.length);
    sum.rounds++;
  }
  t.comment(JSON.stringify(sum));
  t.match(sum, { rounds, lost: 0, duplicated: 0 });
  t.ok(sum.acknowledged > rounds && sum.interrupted > 0, 'the children had turns to lose');
}

/** Kills a process at a random point, and returns the commits that were acknowledged. */
async function killed(args: readonly string[], within: number, random: () => number): Promise<readonly string[]> {
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  // Half of the kills follow closely after a turn; the others come at any time.
  const turns = random() < 0.5 ? Math.floor(random() * 60) : Number.POSITIVE_INFINITY;
  const time = random() * within;
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (output === '' && turns === Number.POSITIVE_INFINITY) setTimeout(() => child.kill('SIGKILL'), time);
    output += text;
    if (output.split('\n').length - 2 > turns) child.kill('SIGKILL');
  });
  const [, signal] = await ended;
  if (signal !== 'SIGKILL') throw new Error(`the process ended by itself: ${args.join(' ')}`);
  return output.split('\n').slice(1, -1);
}

/** A turn like those of the process. */
function turnNumber(n: number): readonly Message[] {
  return [1, 2].map((i) => ({ role: i === 1 ? 'user' : 'assistant', content: `turn ${n} message ${i} of 2` }));
}
