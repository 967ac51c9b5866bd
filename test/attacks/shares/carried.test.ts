import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { ASSISTANT, TestServer, TRANSPORTS } from '../../support/test-server.js';

const MIB = 1024 * 1024;

const said = (content: string) => ({ type: 'message', role: 'developer', content });
const asked = { type: 'message', role: 'user', content: 'Hi' };

/**
 * A server, what asks it for a response, how many sessions it has, and the bytes of the documents
 * that it leaves.
 */
async function open(t: Test) {
  const path = join(t.testdir(), 'sessions.db');
  const yaml = `${TRANSPORTS}  responses: {}\n  conversations: {}\n${ASSISTANT}sessions: { use: sqlite, path: ${path} }\n`;
  const server = await TestServer.start(t, yaml.replace('model: big-1', 'model: big-1, contextWindow: 100000000'));
  const respond = async (input: readonly object[], previous?: string): Promise<string> => {
    const body = { model: 'assistant', input, previous_response_id: previous };
    return JSON.parse((await server.request('POST', '/v1/responses', {}, body)).text).id;
  };
  const sessions = async () => JSON.parse((await server.request('GET', '/v1/conversations')).text).data.length;
  const left = async () => {
    await server.stop();
    const database = new DatabaseSync(path, { readOnly: true });
    const sum = database.prepare('SELECT sum(octet_length(body)) AS bytes FROM document').get();
    database.close();
    return Number(sum?.bytes);
  };
  return { server, respond, sessions, left };
}

/** The beginnings of the system messages of the last request at the model. */
const systemOf = (server: TestServer) =>
  server.asked.messages
    .filter(({ role }) => role !== 'user' && role !== 'assistant')
    .map((one) => String(one.content).slice(0, 8));

t.test('S-70 what a response carries on is stored once, however many continue it and add to it', async (t) => {
  const { server, respond, sessions, left } = await open(t);
  const tool = (description: string) => ({ type: 'function', name: 'look', description, parameters: { type: 'object' } });
  const adds = (description: string) => ({ type: 'additional_tools', role: 'developer', tools: [tool(description)] });
  const more = Array.from({ length: 10 }, (_, at) => `more ${at}`);
  const ids = [await respond([said('first'.padEnd(MIB, 'x')), adds('Looks.'.padEnd(9_000)), asked])];
  for (const text of more) ids.push(await respond([said(text), asked], ids.at(-1)));
  ids.push(await respond([adds('Looks again.'.padEnd(9_000)), asked], ids.at(-1)));
  ids.push(await respond([asked], ids.at(-1)));
  t.same(systemOf(server).slice(-11), ['firstxxx', ...more]);
  t.match(server.asked.tools, [{ function: { description: /^Looks again/ } }]);

  const branch = await respond([said('other'), asked], ids[2]);
  t.same(systemOf(server).slice(-4), ['firstxxx', 'more 0', 'more 1', 'other']);
  t.match(server.asked.tools, [{ function: { description: /^Looks\. / } }]);
  const last = await respond([asked], branch);
  t.same(systemOf(server).slice(-4), ['firstxxx', 'more 0', 'more 1', 'other']);
  t.equal(await sessions(), 2);

  for (const id of [branch, ids[0]]) await server.request('DELETE', `/v1/responses/${id}`);
  t.equal(await sessions(), 2);
  await respond([asked], ids.at(-1));
  t.same(systemOf(server).slice(-11), ['firstxxx', ...more], 'it does not go with the response that said it first');
  await server.request('DELETE', `/v1/responses/${last}`);
  t.equal(await sessions(), 1, 'a branch without responses leaves nothing');
  const bytes = await left();
  t.ok(bytes < 1.1 * MIB, `${bytes} bytes are left`);
});

t.test('S-70 what a failed response would carry is not stored', async (t) => {
  const { server, respond, left } = await open(t);
  const id = await respond([asked]);
  server.models.respond({ status: 400 });
  await respond([said('x'.repeat(MIB)), asked], id);
  t.ok((await left()) < 1.1 * MIB, 'but its own items');
});

t.test('S-70 what a response carries on stays in the account of each request that continues it', async (t) => {
  const yaml = `${TRANSPORTS}  responses: {}\n${ASSISTANT}limits: { memory: 32mb }\n`.replace(
    'model: big-1',
    'model: big-1, contextWindow: 100000000',
  );
  const server = await TestServer.start(t, yaml);
  const carried = { type: 'message', role: 'developer', content: 'y'.repeat(MIB) };
  const input = [carried, { type: 'message', role: 'user', content: 'Hi' }];
  const first = await server.request('POST', '/v1/responses', {}, { model: 'assistant', input });
  t.equal(first.status, 200);
  const { id } = JSON.parse(first.text);

  const gate = Promise.withResolvers<void>();
  server.models.respond({ before: gate.promise, text: 'ok' });
  const statuses: number[] = [];
  const continued = Array.from({ length: 20 }, async () => {
    const body = { model: 'assistant', input: 'Go on', previous_response_id: id, store: false };
    const { status } = await server.request('POST', '/v1/responses', {}, body);
    statuses.push(status);
  });
  const isEvery = () => statuses.length + server.models.requests.length - 1 >= 20;
  t.ok(await eventually(isEvery));
  t.ok(statuses.length > 10, 'most do not fit');
  gate.resolve();
  await Promise.all(continued);
  t.same([...new Set(statuses)].sort(), [200, 503]);
});
