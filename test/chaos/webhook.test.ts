import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually, ModelServer } from '@plugboard/testing';
import t from 'tap';
import { Receiver, SECRET } from '../../plugins/transport-webhook/test/receiver.js';
import { rounds } from '../support/rounds.js';
import { seeded } from '../support/seeded.js';
import { Victim } from './victim.js';

/** How often the server is killed. */
const KILLS = rounds({ short: 2, long: 40, soak: 200 });
const SEED = Number(process.env.PLUGBOARD_SEED ?? 63);
const CHATS = ['c1', 'c2', 'c3'];
/** Messages of a chat in one life. */
const MESSAGES = 5;
const LIMIT = 60_000 + KILLS * 5_000;
t.setTimeout(LIMIT);

/** The step of a message that a kill follows: taken, its model asked, its reply sent. */
const STEPS = ['taken', 'asked', 'sent', 'time'] as const;
type Step = (typeof STEPS)[number];

const YAML = `
transports:
  http: { port: 0 }
  desk: { use: webhook, secret: ${SECRET}, replyUrl: "\${REPLY_URL}", allowPrivate: [127.0.0.1], agent: helper }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  helper: { model: fast }
sessions: { use: sqlite, path: ./sessions.db }
log: { level: warn }
`;

interface Said {
  readonly id: string;
  readonly chat: string;
  readonly text: string;
}

t.test(`CH-6 CH-1 a server that is killed ${KILLS} times answers each signed message exactly once`, async (t) => {
  t.setTimeout(LIMIT);
  t.comment(`PLUGBOARD_SEED=${SEED}`);
  const random = seeded(SEED);
  const upTo = (n: number) => Math.floor(random() * n);
  const receiver = await Receiver.start(t);
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const folder = t.testdir({ 'plugboard.yaml': YAML });
  const victim = new Victim(t, folder, { MODEL_URL: models.url, REPLY_URL: receiver.url });
  const said: Said[] = [];
  const killedOn: Partial<Record<Step, number>> = {};
  let asked = 0;
  let see: (step: Step) => void = () => {};
  models.respond(async ({ body }) => {
    asked++;
    see('asked');
    await wait(random() * 10);
    return { text: `You said: ${body.messages.at(-1)?.content}` };
  });
  receiver.onAttempt = () => see('sent');

  /** Says a message until it is taken, or the server is dead. */
  async function say(url: string, message: Said, isDead: () => boolean): Promise<boolean> {
    const { id, chat, text } = message;
    while (!isDead()) {
      try {
        const { status } = await receiver.say(`${url}/channels/desk`, id, { chat, sender: 'ann', text });
        if (status === 202) return true;
      } catch {
        if (!isDead()) await wait(5);
      }
    }
    return false;
  }

  const unsaid = new Map<string, Said[]>(CHATS.map((chat) => [chat, []]));
  for (let kill = 0; kill <= KILLS; kill++) {
    const isLast = kill === KILLS;
    for (const chat of CHATS) {
      for (let n = 0; n < (isLast ? 1 : MESSAGES); n++) {
        const message = { id: `in_${said.length}`, chat, text: `message ${said.length}` };
        said.push(message);
        unsaid.get(chat)?.push(message);
      }
    }
    const url = await victim.start();
    let isDead = false;
    const killed = Promise.withResolvers<void>();
    if (!isLast) {
      const step = STEPS[kill % STEPS.length] ?? 'time';
      killedOn[step] = (killedOn[step] ?? 0) + 1;
      let left = upTo(step === 'time' ? 200 : 12);
      const die = async () => {
        see = () => {};
        await wait(random() * 3);
        isDead = true;
        await victim.kill();
        killed.resolve();
      };
      if (step === 'time') setTimeout(() => void die(), left);
      else
        see = (one) => {
          if (one === step && left-- === 0) void die();
        };
    }
    await Promise.all(
      [...unsaid.values()].map(async (messages) => {
        for (let [next] = messages; next && !isDead; [next] = messages) {
          if (!(await say(url, next, () => isDead))) return;
          messages.shift();
          see('taken');
        }
      }),
    );
    if (!isLast) await killed.promise;
  }
  await eventually(() => new Set(receiver.replies.map(({ body }) => body.reply_to)).size === said.length);
  t.equal(await victim.stop(), 0);

  const stored = await victim.read(
    join(folder, 'end'),
    CHATS.map((chat) => [`desk:${chat}`, 'helper']),
  );
  for (const chat of CHATS) {
    const users = (stored.get(`desk:${chat}`)?.messages ?? []).filter(({ role }) => role === 'user');
    t.strictSame(
      users.map(({ content }) => content),
      said.filter((message) => message.chat === chat).map(({ text }) => text),
      `${chat}: every message is stored once, in order`,
    );
  }
  const replies = Map.groupBy(receiver.replies, ({ body }) => String(body.reply_to));
  const lost = said.filter(({ id }) => !replies.has(id));
  const doubled = said.filter(({ id }) => (replies.get(id)?.length ?? 0) > 1);
  const wrong = said.filter(({ id, text }) => replies.get(id)?.[0]?.body.text !== `You said: ${text}`);
  t.strictSame({ lost, doubled, wrong, forged: receiver.forged }, { lost: [], doubled: [], wrong: [], forged: [] });
  const report = {
    kills: KILLS,
    killedOn,
    messages: said.length,
    turnsCut: asked - said.length,
    sentAgain: receiver.attempts.length - receiver.replies.length,
    lost: lost.length,
    doubled: doubled.length,
  };
  t.comment(JSON.stringify(report));
  t.ok(asked > said.length, 'some turns were cut');
});
