import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { ModelServer } from '@plugboard/testing';
import t from 'tap';
import { messageOf } from '../../plugins/transport-slack/test/support/slack-events.js';
import { APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, SlackServer } from '../../plugins/transport-slack/test/support/slack-server.js';
import { rounds } from '../support/rounds.js';
import { seeded } from '../support/seeded.js';
import { Victim } from './victim.js';

const KILLS = { 'Socket Mode': rounds({ short: 1, long: 22, soak: 220 }), HTTP: rounds({ short: 1, long: 11, soak: 110 }) };
type Mode = keyof typeof KILLS;
/** Milliseconds that a life may wait for its point, and a model between two words. */
const [PATIENCE, PAUSE] = rounds({ short: 0, long: 1, soak: 1 }) === 0 ? [6_000, 1_000] : [12_000, 2_500];
const SEED = Number(process.env.PLUGBOARD_SEED ?? 44);
const LIMIT = 90_000 + (KILLS['Socket Mode'] + KILLS.HTTP) * 15_000;
t.setTimeout(LIMIT);

/** Where a life of the server ends: what Slack or the model sees at that moment. */
const POINTS = [
  'chat.stopStream done',
  'envelope sent',
  'chat.startStream done',
  'chat.postMessage done',
  'model asked',
  'chat.startStream asked',
  'envelope acknowledged',
  'chat.stopStream asked',
  'chat.postMessage asked',
  'chat.appendStream done',
  'chat.update done',
];
const MESSAGES_A_LIFE = 8;

const yaml = (apiUrl: string, mode: Mode) => `
transports:
  http: { port: 0 }
  slack:
    use: ${JSON.stringify(join(import.meta.dirname, '../../plugins/transport-slack'))}
    botToken: ${BOT_TOKEN}
    ${mode === 'HTTP' ? `signingSecret: ${SIGNING_SECRET}` : `appToken: ${APP_TOKEN}`}
    apiUrl: ${apiUrl}
    agent: helper
models: { fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 } }
agents: { helper: { model: fast } }
sessions: { use: sqlite, path: ./sessions.db }
log: { level: warn }
`;

for (const mode of ['Socket Mode', 'HTTP'] as const) {
  t.test(
    `CH-1 CH-6 an entry over ${mode} that is killed ${KILLS[mode]} times runs each message once, and each answer is there once`,
    async (t) => {
      t.setTimeout(LIMIT);
      t.comment(`PLUGBOARD_SEED=${SEED}`);
      const random = seeded(SEED);
      const slack = new SlackServer();
      await slack.start();
      t.teardown(() => slack.stop());
      const models = await ModelServer.start();
      t.teardown(() => models.close());
      const folder = t.testdir({ 'plugboard.yaml': yaml(slack.apiUrl, mode) });
      const victim = new Victim(t, folder, { MODEL_URL: models.url });

      /** The life ends when its point was seen so often. */
      let point = '';
      let left = 0;
      let dead = Promise.withResolvers<void>();
      const seen = (what: string): Promise<void> | undefined => {
        if (what !== point || --left !== 0) return undefined;
        return victim.kill().then(() => dead.resolve());
      };
      slack.onCall = ({ method }, stage) => seen(`${method} ${stage}`);
      slack.sockets.onSent = () => void seen('envelope sent');
      slack.sockets.onAcknowledged = () => void seen('envelope acknowledged');
      let asked = 0;
      models.respond(async ({ body }) => {
        asked++;
        await seen('model asked');
        const said = String(body.messages.at(-1)?.content);
        const isSlow = random() < 0.4;
        const pause = () => wait(random() * (isSlow ? PAUSE : 50));
        return { text: ['An ', pause(), 'answer ', pause(), `to ${said}.`] };
      });

      /** The messages of each session, in order. */
      const sessions = new Map<string, string[]>();
      let count = 0;
      const threads: string[] = [];
      const say = () => {
        const text = `message ${++count}`;
        const ts = slack.conversations.ts();
        const thread = threads[Math.floor(random() * threads.length * 1.5)];
        const direct = random() < 0.4 ? `D${1 + Math.floor(random() * 5)}` : undefined;
        if (direct === undefined && thread === undefined) threads.push(ts);
        const key = direct !== undefined ? `slack:${direct}` : `slack:C1:${thread ?? ts}`;
        sessions.set(key, [...(sessions.get(key) ?? []), text]);
        const mention = thread === undefined ? '<@UBOT> ' : '';
        const event =
          direct !== undefined
            ? messageOf(direct, ts, text)
            : messageOf('C1', ts, mention + text, thread === undefined ? {} : { thread_ts: thread, parent_user_id: 'U1' });
        slack.sockets.send('events_api', event);
      };

      /** Starts the next life. Over HTTP, Slack posts what was not taken again and again. */
      let life = 0;
      const launch = async () => {
        const own = ++life;
        try {
          const url = await victim.start();
          if (mode === 'HTTP') void post(`${url}/channels/slack`, () => own === life);
        } catch {
          // killed before it listened
        }
      };
      const post = async (url: string, isAlive: () => boolean) => {
        for (const envelope of slack.sockets.envelopes) {
          while (envelope.acknowledged === undefined && isAlive()) {
            envelope.attempts++;
            const answer = slack.post(url, envelope.payload).catch(() => undefined);
            await seen('envelope sent');
            if ((await answer)?.status !== 200) await wait(20);
            else {
              envelope.acknowledged = life;
              await seen('envelope acknowledged');
            }
          }
        }
      };

      const finished = () => slack.conversations.answers.filter(({ metadata }) => metadata !== undefined);
      const isDone = () =>
        finished().length >= count && slack.sockets.envelopes.every(({ acknowledged }) => acknowledged !== undefined);
      const answered = async () => {
        while (!isDone()) await wait(20);
      };

      const died: Record<string, number> = {};
      for (let kill = 0; kill < KILLS[mode]; kill++) {
        for (let n = 0; n < MESSAGES_A_LIFE; n++) say();
        dead = Promise.withResolvers();
        left = 1 + Math.floor(random() * 2);
        point = POINTS[kill % POINTS.length] ?? '';
        void launch();
        const isSeen = await Promise.race([dead.promise.then(() => true), wait(PATIENCE).then(() => false)]);
        died[isSeen ? point : 'any time'] = (died[isSeen ? point : 'any time'] ?? 0) + 1;
        point = '';
        if (!isSeen) await victim.kill();
        if (kill % 5 !== 4) continue;
        // A turn that ten crashes have cut is given up: not so many here.
        await launch();
        await answered();
        await victim.kill();
      }
      await launch();
      await answered();
      t.equal(await victim.stop(), 0);

      const stored = await victim.read(
        join(folder, 'end'),
        [...sessions.keys()].map((key) => [key, 'helper'] as const),
      );
      for (const [key, own] of sessions) {
        const messages = stored.get(key)?.messages ?? [];
        t.strictSame(
          messages.filter(({ role }) => role === 'user').map(({ content }) => content),
          own,
          `${key}: every message is stored once, in order`,
        );
      }
      const texts = slack.conversations.answers.map(({ text }) => text).sort();
      const expected = [...sessions.values()].flat().map((text) => `An answer to ${text}.`);
      t.strictSame(texts, expected.sort(), 'every answer is there once, whole, and nothing else');
      const repaired = slack.conversations.answers.filter(({ edits }) => edits > 0).length;
      const again = slack.sockets.envelopes.filter(({ attempts }) => attempts > 1).length;
      t.comment(
        `${count} messages, ${asked - count} turns cut, ${again} delivered again, ${repaired} answers repaired, 0 lost, 0 doubled`,
      );
      t.comment(`killed at: ${JSON.stringify(died)}`);
      t.ok(asked >= count);
    },
  );
}
