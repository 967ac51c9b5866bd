/** What a caller can make a server hold with small requests (docs/guides/memory.md). */
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { LIVE_TRANSPORTS } from '../../support/live.js';
import { LiveSocket } from '../../support/live-socket.js';
import { created, respond } from '../../support/respond.js';
import { ASSISTANT, type Reply, TestServer } from '../../support/test-server.js';

const KIB = 1024;
/** An agent whose model is sent whole conversations. */
const AGENT = ASSISTANT.replace('model: big-1', 'model: big-1, contextWindow: 100000000');

/** @param memory of all callers. One of them alone gets half of it. */
async function start(t: Test, memory: string, { http = '{ port: 0 }', limits = '' } = {}) {
  const yaml = `${LIVE_TRANSPORTS.replace('{ port: 0 }', http)}limits: { memory: ${memory}${limits} }\n${AGENT}`;
  const app = await TestServer.start(t, yaml);
  const budget = () => app.started.server.budgets.reports().find(({ setting }) => setting === 'limits.memory');
  const chat = (content: string, session: string) =>
    app.chat({ model: 'assistant', session_id: session, messages: [{ role: 'user', content }] });
  return { app, budget, chat };
}

const OVERLOADED = { error: { code: 'overloaded', message: /`limits\.memory`/ } };

/** Checks that a reply says that there is no memory. */
function isOverloaded(t: Test, { status, headers, body }: Reply, name: string): void {
  t.match({ status, body }, { status: 503, body: OVERLOADED }, name);
  t.ok(Number(headers.get('retry-after')) > 0, name);
}

t.test('S-50 an item that a request refers to counts as often as it is named', async (t) => {
  const tooLarge = { status: 413, body: { error: { code: 'request_too_large', message: /`bodyLimit`/ } } };
  for (const [memory, refused] of [
    ['100mb', (reply: Reply) => t.match(reply, tooLarge)],
    ['4mb', (reply: Reply) => isOverloaded(t, reply, 'beyond the share of the caller')],
  ] as const) {
    const { app, budget } = await start(t, memory, { http: '{ port: 0, bodyLimit: 1mb }' });
    app.models.respond({ text: 'x'.repeat(100 * KIB) });
    const { output } = await created(app, { input: 'much' });
    const naming = (times: number) => {
      const references = Array<object>(times).fill({ type: 'item_reference', id: output[0]?.id });
      return respond(app, { input: [...references, { role: 'user', content: 'x' }] });
    };
    t.equal((await naming(3)).status, 200);
    const asked = app.models.requests.length;
    refused(await naming(12));
    t.equal(app.models.requests.length, asked, 'no model is asked');
    await eventually(() => budget()?.used === 0);
  }
});

t.test('S-51 a turn waits for the memory of its history before it loads it', async (t) => {
  const { app, budget, chat } = await start(t, '3mb');
  app.models.respond({ text: 'ok' });
  for (const session of ['a', 'b', 'c']) t.equal((await chat('x'.repeat(200 * KIB), session)).status, 200);
  t.ok((budget()?.cached ?? 0) > 3 * 600 * KIB, 'between turns, histories take what is free');
  const gate = Promise.withResolvers<void>();
  app.models.respond(async () => {
    await gate.promise;
    return { text: 'ok' };
  });
  const before = app.models.requests.length;
  const running = ['a', 'b', 'c'].map((session) => chat('and now?', session));
  await app.models.received(before + 2);
  await new Promise((resolve) => setTimeout(resolve, 100));
  t.equal(app.models.requests.length, before + 2, 'the third turn waits');
  t.ok((budget()?.used ?? 0) > 2 * 600 * KIB);
  gate.resolve();
  for (const reply of await Promise.all(running)) t.equal(reply.status, 200);
  await eventually(() => budget()?.used === 0);

  app.models.respond({ text: 'ok' });
  let last = await chat('x', 'a');
  for (let turn = 0; turn < 10 && last.status === 200; turn++) last = await chat('x'.repeat(50 * KIB), 'a');
  t.match(last, { status: 409, body: { error: { code: 'session_full', message: /`limits\.memory`/ } } });
  t.equal((await chat('and now?', 'b')).status, 200);
});

t.test('S-52 a history that is not continued in its session, or is compacted, counts as well', async (t) => {
  const { app, budget, chat } = await start(t, '4mb');
  app.models.respond({ text: 'ok' });
  const first = await created(app, { input: 'x'.repeat(200 * KIB) });
  const { id } = await created(app, { input: 'x'.repeat(200 * KIB), previous_response_id: first.id });
  const gate = Promise.withResolvers<void>();
  app.models.respond(async () => {
    await gate.promise;
    return { text: 'ok' };
  });
  const asked = app.models.requests.length + 1;
  const running = chat('x'.repeat(300 * KIB), 'another');
  await app.models.received(asked);
  isOverloaded(t, await respond(app, { input: 'x', previous_response_id: id, store: false }), 'store: false');
  isOverloaded(
    t,
    await app.request('POST', '/v1/responses/compact', {}, { model: 'assistant', previous_response_id: id }),
    'compact',
  );
  t.equal(app.models.requests.length, asked, 'no model is asked');
  gate.resolve();
  t.equal((await running).status, 200);
  const small = await created(app, { input: 'x' });
  t.equal((await respond(app, { input: 'x', previous_response_id: small.id, store: false })).status, 200);
  await eventually(() => budget()?.used === 0);
});

t.test('S-53 the values of a body count besides its bytes', async (t) => {
  const { app, budget } = await start(t, '4mb');
  app.models.respond({ text: 'ok' });
  const body = (unused: unknown) => ({ model: 'assistant', messages: [{ role: 'user', content: 'x' }], unused });
  const empty = Array<object>(50_000).fill({});
  const bytes = JSON.stringify(body(empty)).length;
  t.equal((await app.chat(body('x'.repeat(bytes)))).status, 200, 'as many bytes in one value');
  isOverloaded(t, await app.chat(body(empty)), 'values');
  isOverloaded(t, await app.chat(body(Array<object>(25_000).fill({ k: 1 }))), 'values and keys');
  await eventually(() => budget()?.used === 0);

  const gate = Promise.withResolvers<void>();
  app.models.respond(async () => {
    await gate.promise;
    return { text: 'ok' };
  });
  const running = app.chat(body(Array<object>(20_000).fill({})));
  await app.models.received(app.models.requests.length + 1);
  t.ok((budget()?.used ?? 0) > 20_000 * 64, 'until the turn has ended');
  gate.resolve();
  t.equal((await running).status, 200);
});

t.test('S-56 an answer without an end fails its turn, whatever it consists of', async (t) => {
  for (const [memory, limits, message] of [
    ['4mb', '', /`limits\.memory`/],
    ['64mb', ', answerSize: 256kb', /`limits\.answerSize`/],
  ] as const) {
    const { app, budget } = await start(t, memory, { limits });
    const much = Array<string>(400).fill('much '.repeat(2_000));
    for (const answer of [{ text: much }, { reasoning: much }]) {
      app.models.respond(answer);
      const body = { model: 'assistant', messages: [{ role: 'user', content: 'x' }] };
      const whole = await app.chat(body);
      const streamed = await app.chat({ ...body, stream: true });
      const response = await respond(app, { input: 'x' });
      const status = limits === '' ? 503 : 502;
      t.match([whole.status, response.status], [status, status], String(message));
      t.match(whole.body, { error: { message } });
      t.match(streamed.text, message);
      t.match(response.body, { error: { message } });
    }
    await eventually(() => budget()?.used === 0);
  }
});

t.test('S-67 what a turn was asked is reserved and rendered once, for all who watch', async (t) => {
  const asked = 'x'.repeat(1024 * KIB);
  for (const [memory, isShown] of [
    ['24mb', true],
    ['8mb', false],
  ] as const) {
    const { app, budget, chat } = await start(t, memory);
    const { body } = await app.request('POST', '/v1/conversations', {}, { agent: 'assistant', id: 'c' });
    const gate = Promise.withResolvers<void>();
    app.models.respond({ text: ['Yes', gate.promise, '.'] });
    const sockets = await Promise.all(Array.from({ length: 12 }, () => LiveSocket.open(t, app)));
    for (const socket of sockets) {
      socket.send({ type: 'svc:conversation.watch', conversation: (body as { id: string }).id });
      await socket.until('svc:conversation.watched');
      socket.ws.pause();
    }
    const answer = chat(asked, 'c');
    await app.models.received(1);
    await eventually(() => (budget()?.peak ?? 0) > 4 * asked.length || !isShown);
    for (const socket of sockets) socket.ws.resume();
    for (const socket of sockets) {
      const events = await socket.until(isShown ? 'svc:session.state' : 'error');
      if (isShown) {
        const input = events.find(({ type }) => type === 'svc:response.input');
        t.equal(input?.sequence_number, 2);
        t.ok(JSON.stringify(input).includes(asked));
      } else t.match(events.at(-1), { error: { code: 'overloaded', message: /`limits\.memory`/ } });
    }
    gate.resolve();
    t.equal((await answer).status, 200, 'the turn is not disturbed');
    t.ok((budget()?.peak ?? 0) < 9 * asked.length, 'three times for the request, three times for all who watch');
    for (const socket of sockets) socket.ws.terminate();
    t.ok(await eventually(() => budget()?.used === 0));
  }
});
