/** A bot at two servers over one PostgreSQL, which are killed and stopped in turn. */
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually, ModelServer } from '@plugboard/testing';
import t from 'tap';
import { newSchema, openStore, SYSTEM_CLOCK } from '../../../plugins/store-postgres/test/open-store.js';
import { realPostgres } from '../../../plugins/store-postgres/test/real-postgres.js';
import { TelegramServer, TOKEN } from '../../../plugins/transport-telegram/test/support/telegram-server.js';
import { ANN, messageOf } from '../../../plugins/transport-telegram/test/support/updates.js';
import { rounds } from '../../support/rounds.js';
import { seeded } from '../../support/seeded.js';
import { Victim } from '../victim.js';

const ENDS = rounds({ short: 2, long: 6, soak: 100 });
const SEED = Number(process.env.PLUGBOARD_SEED ?? 46);
const LIMIT = 60_000 + ENDS * 40_000;
t.setTimeout(LIMIT);

const YAML = `
transports:
  http: { port: 0 }
  telegram: { token: "${TOKEN}", apiRoot: "\${API_ROOT}", agent: helper, allow: ["${ANN.id}"] }
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  helper: { model: fast }
sessions: { use: postgres, url: "\${DATABASE_URL}", schema: "\${SCHEMA}", lease: 5s }
log: { level: warn }
`;

t.test('CH-1 CH-6 CH-10 PG-17 a bot whose servers are killed answers each message, and runs no turn twice', async (t) => {
  t.setTimeout(LIMIT);
  t.comment(`PLUGBOARD_SEED=${SEED}`);
  const random = seeded(SEED);
  const api = await TelegramServer.start();
  t.teardown(() => api.close());
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  models.respond(async ({ body: { messages } }) => {
    await wait(random() * 50);
    return { text: `answer to ${messages.at(-1)?.content}` };
  });
  const postgres = await realPostgres();
  const schema = newSchema();
  const env = { MODEL_URL: models.url, API_ROOT: api.url, DATABASE_URL: postgres.url(), SCHEMA: schema };
  const folder = t.testdir({ one: { 'plugboard.yaml': YAML }, two: { 'plugboard.yaml': YAML } });
  const servers = ['one', 'two'].map((name) => new Victim(t, join(folder, name), env));
  await Promise.all(servers.map((server) => server.start()));

  const said: string[] = [];
  const say = () => {
    const text = `message ${said.length + 1}`;
    said.push(text);
    api.push(messageOf({ text }));
  };
  const isAnswered = () => said.every((said) => api.messages.some(({ text }) => text === `answer to ${said}`));
  for (let end = 0; end < ENDS; end++) {
    const server = servers[end % 2] as Victim;
    for (let n = 0; n < 3; n++) say();
    await wait(random() * 200);
    if (end % 3 === 2) t.equal(await server.stop(), 0);
    else await server.kill();
    say();
    await Promise.all([server.start(), eventually(isAnswered)]);
  }
  for (const server of servers) t.equal(await server.stop(), 0);

  const { store, close } = await openStore({ schema, clock: SYSTEM_CLOCK });
  const { messages } = await store.load({ project: 'default', agent: 'helper', key: `telegram:${ANN.id}` });
  await close();
  t.strictSame(
    messages.map(({ content }) => content),
    said.flatMap((text) => [text, `answer to ${text}`]),
    'each message has one turn, in order',
  );
  t.comment(JSON.stringify({ ends: ENDS, messages: said.length, sentAgain: api.messages.length - said.length }));
});
