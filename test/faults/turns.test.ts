import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { eventually } from '../support/eventually.js';
import { answerOf, saying, TRANSPORTS, World } from '../support/world.js';

const one = (fields = '') => `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1, apiKey: "\${MODEL_KEY}" }
agents:
  assistant: { model: fast${fields} }
`;

t.test('a retry that arrives just after the hang-up is queued behind the dying turn, and answered', async (t) => {
  const world = await World.start(t, one());
  for (let round = 0; round < 20; round++) {
    const before = world.models.requests.length;
    const gate = Promise.withResolvers<void>();
    world.models.enqueue({ text: ['Half', gate.promise] }, { text: 'Whole' });
    const body = saying(`Hi ${round}`, { session_id: `s${round}` });
    const first = await world.open(body);
    await world.models.received(before + 1);
    first.leave();
    if (round % 2 === 1) await delay(0);
    const reply = await world.chat({ ...body, stream: false });
    gate.resolve();
    t.equal(reply.status, 200, reply.text);
    t.equal(answerOf(reply), 'Whole');
  }
});

t.test('requests that the model server refuses do not make its connection count as failed', async (t) => {
  const yaml = `${TRANSPORTS}
models:
  first: { use: openai, baseUrl: "\${MODEL_URL}", model: first-1 }
  second: { use: openai, baseUrl: "\${MODEL_URL}", model: second-1 }
agents:
  assistant: { model: [first, second] }
`;
  const world = await World.start(t, yaml);
  for (const status of [400, 413, 422]) {
    world.models.respond(({ body }) => (JSON.stringify(body).includes('poison') ? { status } : { text: String(body.model) }));
    for (let n = 0; n < 4; n++) await world.chat(saying('poison'));
    t.equal(answerOf(await world.chat(saying('Hi'))), 'first-1', `after four times ${status}`);
  }
  world.models.respond(({ body }) => (body.model === 'first-1' ? { status: 401 } : { text: String(body.model) }));
  for (let n = 0; n < 3; n++) await world.chat(saying('Hi'));
  const before = world.models.requests.length;
  await world.chat(saying('Hi'));
  t.equal(world.models.requests.length, before + 1, 'a connection whose key is refused is passed over');
});

t.test('with `onDisconnect: continue` a stateless turn with an idempotency key runs to its end without its caller', async (t) => {
  const world = await World.start(t, one(', onDisconnect: continue'));
  const gate = Promise.withResolvers<void>();
  world.models.enqueue({ text: ['Half', gate.promise, ' and whole'] });
  const key = { 'idempotency-key': 'k' };
  const body = saying('Hi', { stream: true });
  const first = await world.open(body, key);
  await world.models.received(1);
  first.leave();
  await delay(50);
  gate.resolve();
  await eventually(async () => (await world.stream(body, key)).status === 200);
  const again = await world.stream(body, key);
  t.equal(again.text, 'Half and whole');
  t.equal(again.headers.get('idempotent-replayed'), 'true');
  t.equal(world.models.requests.length, 1);
});
