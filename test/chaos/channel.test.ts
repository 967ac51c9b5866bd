import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually, ModelServer } from '@plugboard/testing';
import t from 'tap';
import { FakePlatform } from '../../plugin-template/channel/test/fake-platform.js';
import { rounds } from '../support/rounds.js';
import { seeded } from '../support/seeded.js';
import { Victim } from './victim.js';

/** How often the server is killed. */
const KILLS = rounds({ short: 3, long: 40, soak: 200 });
const SEED = Number(process.env.PLUGBOARD_SEED ?? 63);
const CHATS = ['c1', 'c2', 'c3'];
const LIMIT = 60_000 + KILLS * 5_000;
t.setTimeout(LIMIT);

/** The channel of the template, as its package is built. */
const yaml = (url: string) => `
transports:
  chat: { use: ${JSON.stringify(join(import.meta.dirname, '../../plugin-template/channel'))}, url: "${url}", token: secret, agent: helper }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  helper: { model: fast, onRestart: keep-input }
sessions: { use: sqlite, path: ./sessions.db }
log: { level: warn }
`;

t.test(`a channel that is killed ${KILLS} times answers each message exactly once, also with keep-input`, async (t) => {
  t.setTimeout(LIMIT);
  t.comment(`PLUGBOARD_SEED=${SEED}`);
  const random = seeded(SEED);
  const platform = new FakePlatform();
  const url = await platform.start();
  t.teardown(() => platform.stop());
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  let asked = 0;
  /** The first server is killed while its model answers: at least this turn is cut. */
  const killed = Promise.withResolvers<void>();
  models.respond(async () => {
    asked++;
    if (asked === 3) await killed.promise;
    await wait(random() * 10);
    return { text: `answer ${asked}` };
  });
  const folder = t.testdir({ 'plugboard.yaml': yaml(url) });
  const victim = new Victim(t, folder, { MODEL_URL: models.url });

  const say = () => platform.say(`message ${platform.messages.length + 1}`, CHATS[platform.messages.length % CHATS.length]);
  const waiting = () => platform.messages.length - new Set(platform.replies.map(({ replyTo }) => replyTo)).size;
  for (let kill = 0; kill < KILLS; kill++) {
    // A chat takes 100 messages, and a turn that ten kills cut is given up.
    for (let n = 0; n < 15 && waiting() < 60; n++) say();
    const before = asked + platform.replies.length;
    victim.launch();
    // A point of a turn that no other life was killed at: so many model calls and replies from
    // here.
    const events = 1 + Math.floor(random() * 30);
    await eventually(() => (kill === 0 ? asked >= 3 : asked + platform.replies.length >= before + events));
    await wait(random() * 6);
    await victim.kill();
    killed.resolve();
  }
  victim.launch();
  while (waiting() > 0) await wait(20);
  t.equal(await victim.stop(), 0);

  const stored = await victim.read(
    join(folder, 'end'),
    CHATS.map((chat) => [`chat:${chat}`, 'helper']),
  );
  const texts: Record<number, string> = {};
  for (const chat of CHATS) {
    const own = platform.messages.filter((message) => message.chat === chat);
    const messages = stored.get(`chat:${chat}`)?.messages ?? [];
    t.strictSame(
      messages.filter(({ role }) => role === 'user').map(({ content }) => content),
      own.map(({ text }) => text),
      `${chat}: every message is stored once, in order`,
    );
    for (const [index, { id }] of own.entries()) texts[id] = String(messages[2 * index + 1]?.content);
  }
  for (const { replyTo, text } of platform.replies)
    if (texts[Number(replyTo)] !== text) t.fail(`the reply to message ${replyTo} is not what is stored`);
  t.equal(platform.replies.length, platform.messages.length, 'each message has one reply');
  const repeated = platform.sent - platform.replies.length;
  t.comment(
    `${platform.messages.length} messages, ${asked - platform.messages.length} turns cut, ${repeated} replies sent again`,
  );
  t.ok(asked > platform.messages.length, 'some turns were cut');
});
