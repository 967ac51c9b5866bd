import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { type ChatRequest, ModelServer } from '@plugboard/testing';
import t from 'tap';
import { rounds } from '../support/rounds.js';
import { seeded } from '../support/seeded.js';
import { type Attempt, check, type Verdict } from './checker.js';
import { modelOf } from './known-turns.js';
import { Player, type PlayerEvent } from './players.js';
import { Victim } from './victim.js';

const ROUNDS = rounds({ short: 3, long: 30, soak: 200 });
const SEED = Number(process.env.PLUGBOARD_SEED ?? 63);
/**
 * So many lives of the server use the same sessions: long enough for them to have a past, short
 * enough to be read in each.
 */
const AGE = 10;

/** Milliseconds for all rounds, for this file and for its one test. */
const LIMIT = 60_000 + ROUNDS * 10_000;
t.setTimeout(LIMIT);

const YAML = `
transports:
  http: { port: 0 }
  chat-completions: {}
  sse: {}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, contextWindow: 10000000 }
tools:
  clock: {}
agents:
  assistant: { model: fast, tools: [clock] }
  keeper: { model: fast, tools: [clock], onRestart: keep-input }
sessions: { use: sqlite, path: ./sessions.db }
log: { level: warn }
`;

/**
 * What the killer waits for: some time, or so many sights of one kind, which it then follows close
 * upon.
 */
const TRIGGERS = ['time', 'time', 'asked', 'chunk', 'finish', 'answered'] as const;
type Trigger = (typeof TRIGGERS)[number];
/**
 * In the first lives, so that there is something to lose, and something that breaks off, however
 * slow the machine is.
 */
const FIRST: readonly Trigger[] = ['answered', 'asked'];

t.test(
  `R-063 a server that is killed ${ROUNDS} times keeps every acknowledged turn exactly once and no partial turn`,
  async (t) => {
    t.setTimeout(LIMIT);
    t.comment(`PLUGBOARD_SEED=${SEED}`);
    const random = seeded(SEED);
    const upTo = (n: number) => Math.floor(random() * n);
    const folder = t.testdir({ 'plugboard.yaml': YAML });
    const models = await ModelServer.start();
    t.teardown(() => models.close());
    const victim = new Victim(t, folder, { MODEL_URL: models.url });

    const journal: Attempt[] = [];
    const players = [
      { who: 'ann' },
      { who: 'bob' },
      { who: 'carl', room: 'shared' },
      { who: 'cleo', room: 'shared' },
      { who: 'dora', agent: 'keeper' },
      { who: 'emil', repeats: true },
      { who: 'fay', repeats: true },
    ].map((player) => new Player(player, journal, random));
    const forgotten: string[] = [];
    const killedOn: Partial<Record<Trigger, number>> = {};
    const verdicts: Verdict[] = [];
    let interrupted = 0;

    let see: (what: PlayerEvent | 'asked') => void = () => {};
    models.respond(({ body }) => {
      see('asked');
      forgotten.push(...missingIn(body, journal));
      return modelOf(body, () => (random() < 0.3 ? wait(upTo(8)) : Promise.resolve()));
    });

    async function start(): Promise<string> {
      const url = await victim.start();
      interrupted += victim.log.filter(({ event }) => event === 'turn_interrupted').length;
      return url;
    }

    /** Players send turns until the server is killed under them. */
    async function liveAndDie(url: string, round: number): Promise<void> {
      const age = Math.floor(round / AGE);
      const trigger = FIRST[round] ?? TRIGGERS[upTo(TRIGGERS.length)] ?? 'time';
      killedOn[trigger] = (killedOn[trigger] ?? 0) + 1;
      let left = upTo(trigger === 'chunk' ? 400 : 30) + (round < FIRST.length ? 10 : 0);
      const killed = Promise.withResolvers<void>();
      const kill = () => {
        see = () => {};
        killed.resolve(victim.kill());
      };
      const time = upTo(400);
      let hasBegun = false;
      see = (what) => {
        if (trigger === 'time' && !hasBegun) setTimeout(kill, time);
        hasBegun = true;
        if (what === trigger && left-- === 0) kill();
      };
      await Promise.all(
        players.map(async (player) => {
          while (await player.turn(url, age, (what) => see(what)));
        }),
      );
      await killed.promise;
    }

    /** Holds what the server has left against the journal. */
    async function judge(name: string, age: number): Promise<void> {
      const sessions = new Map(players.map((player) => [player.session(age), player.agent]));
      const keepers = [...sessions].filter(([, agent]) => agent === 'keeper').map(([session]) => session);
      const verdict = check(
        journal.filter(({ session }) => sessions.has(session)),
        await victim.read(join(folder, name), sessions),
        new Set(keepers),
      );
      const { acknowledged, keptUnacknowledged, keptInput, ...faults } = verdict;
      t.strictSame(faults, { lost: [], duplicated: [], half: [], disordered: [], unasked: [], invalid: [] }, name);
      verdicts[age] = verdict;
    }

    for (let round = 0; round < ROUNDS; round++) {
      if (round % AGE === 0) for (const player of players) player.moveOn();
      await liveAndDie(await start(), round);
      await judge(`left-by-${round}`, Math.floor(round / AGE));
    }

    const url = await start();
    const last = verdicts.length - 1;
    const ends = await Promise.all(players.map((player) => player.turn(url, last, () => {})));
    t.ok(ends.every(Boolean), 'every session takes the next turn');
    t.equal(await victim.stop(), 0);
    await judge('left-by-the-last', last);

    const count = (name: keyof Verdict) =>
      verdicts.reduce((sum, { [name]: what }) => sum + (Array.isArray(what) ? what.length : what), 0);
    const refused = players.flatMap((player) => player.refused);
    const wrong = players.flatMap((player) => player.wrong);
    const report = {
      seed: SEED,
      rounds: ROUNDS,
      killedOn,
      turns: journal.length,
      acknowledged: count('acknowledged'),
      keptUnacknowledged: count('keptUnacknowledged'),
      keptInput: count('keptInput'),
      interrupted,
      repeated: players.reduce((sum, { repeated }) => sum + repeated, 0),
      lost: count('lost'),
      duplicated: count('duplicated'),
      half: count('half'),
      disordered: count('disordered'),
      unasked: count('unasked'),
      invalid: count('invalid'),
    };
    t.comment(JSON.stringify(report));
    t.strictSame(forgotten, [], 'the model receives everything that was acknowledged before');
    t.strictSame(refused, [], 'a turn is refused only if it is repeated after its tools had begun');
    t.strictSame(wrong, [], 'each client got the answer to what it had said');
    t.ok(report.acknowledged > 0 && interrupted > 0, 'there was something to lose');
  },
);

/** The acknowledged turns of a session that are missing in the request to the model. */
function missingIn({ messages }: ChatRequest, journal: readonly Attempt[]): readonly string[] {
  const sent = messages.filter(({ role }) => role === 'user').map(({ content }) => String(content));
  const session = journal.find(({ text }) => text === sent.at(-1))?.session;
  const earlier = journal.filter((one) => one.session === session && one.saw === 'end').map(({ text }) => text);
  return earlier.filter((text) => sent.filter((other) => other === text).length !== 1);
}
