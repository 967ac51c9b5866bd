import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { saying, TestServer } from '../../../test/support/test-server.js';
import type { Report } from './support.js';

const BASE = `
transports:
  http: { port: 0 }
  chat-completions: {}
  sse: {}
agents:
  assistant: { model: fast }
`;
const FAST = 'fast: { use: openai, baseUrl: "$' + '{MODEL_URL}", model: big-1 }';
const yaml = (usage: string, models = FAST) => `${BASE}models: { ${models} }\nplugins: { usage: { ${usage} } }\n`;
const prices = (input: number) => `prices: { fast: { input: ${input}, output: 0 } }`;

async function reload({ started }: TestServer, text: string) {
  await writeFile(join(started.folder, 'plugboard.yaml'), text);
  return started.server.reload();
}

const totalOf = async (server: TestServer) => ((await server.get('/v1/usage')).body as Report).total;

t.test('a reload changes prices for later calls, and neither loses nor doubles a row', async (t) => {
  const server = await TestServer.start(t, yaml(prices(1)));
  const gate = Promise.withResolvers<void>();
  const usage = { promptTokens: 1_000_000 };
  server.models.respond({ text: 'Hello.', usage });
  server.models.enqueue({ text: ['Hel', gate.promise, 'lo'], usage });
  const running = await server.open(saying('Hello'));
  await running.until('Hel');
  for (let n = 0; n < 3; n++) await server.chat(saying('Hello'));
  t.equal((await reload(server, yaml(prices(5)))).refused, undefined);
  gate.resolve();
  await running.end();
  t.match(await totalOf(server), { calls: 4, cost: '4' });
  await server.chat(saying('Hello'));
  t.match(await totalOf(server), { calls: 5, cost: '9' });
});

t.test('a reload adds a budget, and refuses what its file cannot mean', async (t) => {
  const server = await TestServer.start(t, yaml(prices(1)));
  server.models.respond({ text: 'Hello.', usage: { promptTokens: 1_000_000 } });
  await server.chat(saying('Hello'));
  const budget = `${prices(1)}, budgets: [{ amount: 2, per: month }]`;
  t.equal((await reload(server, yaml(budget))).refused, undefined);
  t.equal((await server.chat(saying('Hello'))).status, 200);
  t.equal((await server.chat(saying('Hello'))).status, 429, 'with what the month has had before');

  const other = 'slow: { use: openai, baseUrl: "$' + '{MODEL_URL}", model: big-2 }';
  const unpriced = await reload(server, yaml(budget, `${FAST}, ${other}`));
  t.match(String(unpriced.refused), /needs a price for every model connection; add "slow"/);
  const currency = await reload(server, yaml(`currency: EUR, ${budget}`));
  t.match(String(currency.refused), /currency/);
  t.equal((await server.chat(saying('Hello'))).status, 429, 'what was refused changes nothing');
  t.equal((await reload(server, yaml(prices(1)))).refused, undefined);
  t.equal((await server.chat(saying('Hello'))).status, 200);
});
