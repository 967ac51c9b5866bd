import t from 'tap';
import { ASSISTANT, answerOf, errorOf, saying, TestServer, TRANSPORTS } from '../support/test-server.js';

const yaml = `${TRANSPORTS}  conversations: {}
  responses: {}
${ASSISTANT}`;

t.test('an interrupting request is accepted even if no request may wait', async (t) => {
  const server = await TestServer.start(t, `${yaml}limits: { queuedPerSession: 0 }\n`);
  const gate = Promise.withResolvers<void>();
  server.models.enqueue({ text: ['Half', gate.promise] }, { text: 'Whole' });
  const first = await server.open(saying('One', { session_id: 's' }));
  await first.until('Half');
  const reply = await server.chat(saying('Two', { session_id: 's' }), { 'x-session-busy': 'interrupt' });
  gate.resolve();
  t.equal(reply.status, 200, reply.text);
  t.equal(answerOf(reply), 'Whole');
});

t.test('two consecutive calls with one id are refused in items', async (t) => {
  const server = await TestServer.start(t, yaml);
  const call = { type: 'function_call', call_id: 'same', name: 'f', arguments: '{}' };
  const output = { type: 'function_call_output', call_id: 'same', output: 'x' };
  for (const items of [
    [call, call, output],
    [call, call, output, output],
  ]) {
    const body = { agent: 'assistant', items: [{ role: 'user', content: 'Hi' }, ...items] };
    const reply = await server.request('POST', '/v1/conversations', {}, body);
    t.equal(reply.status, 400, reply.text);
    t.match(errorOf(reply), { param: 'items[2].call_id', code: 'invalid_value', message: /same/ });
  }
  const again = { agent: 'assistant', items: [{ role: 'user', content: 'Hi' }, call, output, call, output] };
  t.equal((await server.request('POST', '/v1/conversations', {}, again)).status, 200, 'in two steps they are different calls');
});

t.test('a request to /v1/responses with an invalid user does not use up its idempotency key', async (t) => {
  const server = await TestServer.start(t, yaml);
  const send = (user: string) =>
    server.request('POST', '/v1/responses', { 'idempotency-key': 'k' }, { model: 'assistant', input: 'Hi', user });
  for (const _ of [1, 2]) {
    const reply = await send('a\u0000b');
    t.equal(reply.status, 400, reply.text);
    t.match(errorOf(reply), { param: 'user' });
  }
  t.equal((await send('ada')).status, 200);
});
