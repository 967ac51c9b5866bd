import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually, ModelServer } from '@plugboard/testing';
import t from 'tap';
import { type ApiCall, TelegramServer, TOKEN } from '../../plugins/transport-telegram/test/support/telegram-server.js';
import { ANN, BEN, FORUM, messageOf } from '../../plugins/transport-telegram/test/support/updates.js';
import { rounds } from '../support/rounds.js';
import { seeded } from '../support/seeded.js';
import { Victim } from './victim.js';

/** Where the server is killed, one after the other. */
const POINTS = [
  'updates were sent',
  'an offset is sent',
  'the model is asked',
  'the model has answered',
  'a draft is sent',
  'a part arrives',
  'a part was taken and answered',
  'a part was taken without an answer',
] as const;
type Point = (typeof POINTS)[number];

const KILLS = rounds({ short: 4, long: 40, soak: 200 });
const SEED = Number(process.env.PLUGBOARD_SEED ?? 44);
const LIMIT = 90_000 + KILLS * 8_000;
t.setTimeout(LIMIT);

const TOPIC = { chat: FORUM, is_topic_message: true, message_thread_id: 9 } as const;
/** The chats by the keys of their sessions, and what is said in each. */
const CHATS: Readonly<Record<string, (text: string) => ReturnType<typeof messageOf>>> = {
  'telegram:101': (text) => messageOf({ text }),
  'telegram:102': (text) => messageOf({ from: BEN, text }),
  [`telegram:${FORUM.id}:9`]: (text) => messageOf({ ...TOPIC, text: `@PlugBot ${text}` }),
};

const yaml = `
transports:
  telegram: { token: "${TOKEN}", apiRoot: "\${API_ROOT}", agent: helper, allow: ["${ANN.id}", "${BEN.id}"] }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  helper: { model: fast }
sessions: { use: sqlite, path: ./sessions.db }
log: { level: warn }
`;

/** A text of more than one message, whose end says what it answers. */
function answerTo(text: string): string {
  return text.startsWith('long') ? `answer to ${text}\n\n${'word '.repeat(1_000)}\n\nend of ${text}` : `answer to ${text}`;
}

t.test(`CH-1 CH-6 a bot that is killed ${KILLS} times answers each message, and runs no turn twice`, async (t) => {
  t.setTimeout(LIMIT);
  t.comment(`PLUGBOARD_SEED=${SEED}`);
  const random = seeded(SEED);
  const api = await TelegramServer.start();
  t.teardown(() => api.close());
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const folder = t.testdir({ 'plugboard.yaml': yaml });
  const victim = new Victim(t, folder, { MODEL_URL: models.url, API_ROOT: api.url });

  /** The point at which this life ends, once it was met so often. */
  let armed: { readonly point: Point; times: number; readonly met: PromiseWithResolvers<void> } | undefined;
  const meet = (point: Point): void => {
    if (armed?.point !== point || armed.times-- > 0) return;
    victim.signal('SIGKILL');
    armed.met.resolve();
    armed = undefined;
  };
  let firstOffset: unknown;
  api.onCall = async ({ method, payload }: ApiCall) => {
    if (method === 'getUpdates') {
      firstOffset ??= payload.offset ?? 0;
      if (Number(payload.offset ?? 0) > Number(firstOffset)) meet('an offset is sent');
    }
    if (method === 'sendMessageDraft') meet('a draft is sent');
    if (method !== 'sendMessage') return;
    if (armed?.point === 'a part was taken without an answer' && armed.times === 0) {
      api.answer('sendMessage', 'done-and-closed');
      setImmediate(() => meet('a part was taken without an answer'));
    } else meet('a part was taken without an answer');
    const isKilled = armed?.point === 'a part arrives' && armed.times === 0;
    meet('a part arrives');
    if (isKilled) await wait(50); // the socket closes before Telegram has it
  };
  api.onAnswered = ({ method }) => {
    if (method === 'getUpdates' && api.updates.length > 0) meet('updates were sent');
    if (method === 'sendMessage') meet('a part was taken and answered');
  };
  let asked = 0;
  models.respond(async ({ body: { messages } }) => {
    asked++;
    meet('the model is asked');
    await wait(random() * 20);
    setTimeout(() => meet('the model has answered'), random() * 10);
    return { text: answerTo(String(messages.at(-1)?.content)) };
  });

  const said: Record<string, string[]> = Object.fromEntries(Object.keys(CHATS).map((session) => [session, []]));
  let count = 0;
  const say = () => {
    for (const [session, message] of Object.entries(CHATS)) {
      const text = `${random() < 0.3 ? 'long' : 'short'} ${++count}`;
      said[session]?.push(text);
      api.push(message(text));
    }
  };
  const heard = () => new Set(api.messages.flatMap(({ text }) => text.match(/(?:answer to|end of) (?:long|short) \d+/g) ?? []));
  const wanted = () =>
    Object.values(said).flatMap((texts) =>
      texts.flatMap((text) => [`answer to ${text}`, ...(text.startsWith('long') ? [`end of ${text}`] : [])]),
    );
  const isDone = () => {
    const has = heard();
    return wanted().every((line) => has.has(line));
  };

  for (let kill = 0; kill < KILLS; kill++) {
    const point = POINTS[kill % POINTS.length] ?? 'a part arrives';
    const met = Promise.withResolvers<void>();
    firstOffset = undefined;
    for (let n = 0; n < 3; n++) say();
    armed = { point, times: Math.floor(random() * 3), met };
    victim.launch();
    await Promise.race([met.promise, eventually(isDone).catch(() => {})]);
    armed = undefined;
    await victim.kill();
  }
  victim.launch();
  while (!isDone()) await wait(20);
  t.equal(await victim.stop(), 0);

  const stored = await victim.read(
    join(folder, 'end'),
    Object.keys(CHATS).map((session) => [session, 'helper']),
  );
  for (const [session, texts] of Object.entries(said)) {
    const messages = stored.get(session)?.messages ?? [];
    t.strictSame(
      messages.map(({ content }) => content),
      texts.flatMap((text) => [text, answerTo(text)]),
      `${session}: each message has one turn, in order`,
    );
  }
  const sent = api.messages.flatMap(({ text }) => text.match(/(?:answer to|end of) (?:long|short) \d+/g) ?? []);
  const repeated = sent.length - new Set(sent).size;
  for (const texts of Object.values(said)) {
    const firsts = [...new Set(sent)].filter((line) => texts.includes(line.replace(/^(?:answer to|end of) /, '')));
    t.strictSame(
      firsts,
      wanted().filter((line) => firsts.includes(line)),
      'the answers of a chat come in order',
    );
  }
  t.comment(`${KILLS} kills, ${count} updates, ${asked - count} turns cut, 0 lost, 0 doubled; ${repeated} parts sent again`);
  t.ok(repeated <= KILLS * Object.keys(CHATS).length, 'only the part under way may come twice');
});
