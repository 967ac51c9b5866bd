import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { ModelServer } from '@plugboard/testing';
import t from 'tap';
import { rounds } from '../../support/rounds.js';
import { seeded } from '../../support/seeded.js';
import { historyFaults } from '../history-faults.js';
import { Victim } from '../victim.js';
import { type AskedCall, Asker, modelOf } from './asker.js';
import { checkApprovals, resultsIn } from './check-approvals.js';
import { DEADLY_TOOL, POINTS, runEventsIn } from './deadly-tool.js';

const KILLS = rounds({ short: 2, long: 33, soak: 200 });
const SEED = Number(process.env.PLUGBOARD_SEED ?? 63);
/** What a client does at most in one life of the server. */
const MOVES = 12;
const LIMIT = 60_000 + KILLS * 10_000;
t.setTimeout(LIMIT);

const YAML = `
transports: { http: { port: 0 }, chat-completions: {}, responses: {}, approvals: {} }
models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, contextWindow: 10000000 } }
tools: { deadly: { use: ./deadly.mjs } }
agents:
  ops: { model: fast, tools: [deadly], approve: ["deadly/*"] }
  keeper: { model: fast, tools: [deadly], approve: ["deadly/*"], onRestart: keep-input }
sessions: { use: sqlite, path: ./sessions.db }
log: { level: warn }
`;

t.test(`AP-4 AP-5 a server that is killed ${KILLS} times around approvals loses and doubles none`, async (t) => {
  t.setTimeout(LIMIT);
  t.comment(`PLUGBOARD_SEED=${SEED}`);
  const random = seeded(SEED);
  const folder = t.testdir({ 'package.json': '{ "type": "module" }', 'plugboard.yaml': YAML, 'deadly.mjs': DEADLY_TOOL });
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const toldTooEarly: string[] = [];
  models.respond(({ body }) => {
    if (JSON.stringify(body.messages).includes('is about to run')) toldTooEarly.push(JSON.stringify(body.messages.at(-1)));
    return modelOf(body);
  });

  const journal = new Map<string, AskedCall>();
  const askers = [
    ['ann', 'ops'],
    ['bob', 'ops'],
    ['cleo', 'keeper'],
    ['dora', 'ops'],
  ].map(([session = '', agent = '']) => new Asker(session, agent, journal, random));
  const died: Record<string, number> = {};

  for (let life = 0; life < KILLS; life++) {
    const point = POINTS[life % POINTS.length] ?? 'any time';
    const after = Math.floor(random() * 20);
    const victim = new Victim(t, folder, {
      MODEL_URL: models.url,
      LIFE: String(life),
      DIE_AT: point,
      DIE_AFTER: String(after),
    });
    const url = await victim.start();
    const time = random() * 150;
    if (point === 'any time') wait(time).then(() => victim.kill());
    const ends = await Promise.all(
      askers.map(async (asker) => {
        for (let move = 0; move < MOVES; move++) if ((await asker.play(url)) === 'cut') return 'cut';
        return 'alive';
      }),
    );
    if (ends.includes('cut')) died[point] = (died[point] ?? 0) + 1;
    await victim.kill();
  }

  const victim = new Victim(t, folder, { MODEL_URL: models.url, LIFE: 'last' });
  const url = await victim.start();
  await Promise.all(
    askers.map(async (asker) => {
      while ((await asker.play(url, false)) !== 'settled');
    }),
  );
  t.equal(await victim.stop(), 0);

  const stored = await victim.read(
    join(folder, 'end'),
    askers.map(({ session, agent }) => [session, agent]),
  );
  const histories = [...stored.values()].map(({ messages }) => messages);
  const ran = join(folder, 'ran.txt');
  const runs = runEventsIn(existsSync(ran) ? readFileSync(ran, 'utf8') : '');
  const { lost, doubled, unapproved, wrong, ...counts } = checkApprovals(
    journal.values(),
    runs,
    new Map(histories.flatMap((messages) => [...resultsIn(messages)])),
  );
  const report = { seed: SEED, kills: KILLS, died, ...counts, lost: lost.length, doubled: doubled.length };
  t.comment(JSON.stringify(report));
  t.strictSame({ lost, doubled, unapproved, wrong }, { lost: [], doubled: [], unapproved: [], wrong: [] });
  t.strictSame(toldTooEarly, [], 'the model reads no result before the call has one');
  // A message that goes on after a decision follows the results of the approved calls.
  const faults = histories.flatMap(historyFaults).filter((fault) => !fault.endsWith('(user) follows upon tool'));
  t.strictSame(faults, [], 'every provider accepts the sessions');
  t.strictSame(
    askers.flatMap(({ wrong }) => wrong),
    [],
    'each client got the answer to what it had said',
  );
  t.ok(counts.decided > 0 && counts.run > 0, 'there was something to lose');
});
