import { eventually } from '@plugboard/testing';
import t from 'tap';
import { ASSISTANT, TestServer, TRANSPORTS } from '../../support/test-server.js';

const MIB = 1024 * 1024;

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
