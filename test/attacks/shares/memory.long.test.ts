/**
 * What ended a server before everything held for callers was counted, on servers with a heap of
 * 256 MiB in processes of their own (docs/guides/memory.md).
 */
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { LIVE_TRANSPORTS } from '../../support/live.js';
import { LiveSocket } from '../../support/live-socket.js';
import { ASSISTANT } from '../../support/test-server.js';
import { Neighbour } from '../support/neighbour.js';
import { ServerProcess } from '../support/server-process.js';

const MIB = 1024 * 1024;
const HEAP = 256;
const [ATTACKER, INNOCENT] = ['token-of-the-attacker', 'token-of-the-innocent'];
const YAML = `${LIVE_TRANSPORTS}sessions: { use: sqlite, path: ./sessions.db }
projects: { acme: {} }
auth: { bearer: { tokens: [
  { name: attacker, project: default, token: ${ATTACKER} }, { name: innocent, project: acme, token: ${INNOCENT} } ] } }
${ASSISTANT.replace('model: big-1', 'model: big-1, contextWindow: 100000000')}  other: { model: fast, project: acme }
`;

t.setTimeout(300_000);

/**
 * Runs an attack beside an innocent caller of another project, who must not notice it.
 *
 * @param attack returns the statuses that the attacker received.
 */
async function survives(
  t: Test,
  attack: (
    server: ServerProcess,
    post: (path: string, body: unknown) => Promise<{ status: number; text: string }>,
  ) => Promise<readonly number[]>,
): Promise<void> {
  const server = await ServerProcess.start(t, { yaml: YAML, heap: HEAP });
  const post = (path: string, body: unknown) =>
    server.request(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${ATTACKER}` },
      body: JSON.stringify(body),
    });
  server.models.respond(() => ({ text: 'ok' }));
  const neighbour = new Neighbour(server, { token: INNOCENT, model: 'other' });
  await eventually(() => neighbour.turns > 10);
  const statuses = await attack(server, post);
  const measured = await neighbour.stop();
  const counts = Object.fromEntries(
    Map.groupBy(statuses, String)
      .entries()
      .map(([status, all]) => [status, all.length]),
  );
  t.comment(
    `attacker: ${JSON.stringify(counts)}, neighbour: ${JSON.stringify(measured)}, peak ${Math.round(server.peakMemory())} MiB`,
  );
  t.ok(server.running, 'the process lives');
  t.same(measured.failures, {}, 'the other caller noticed nothing');
  t.same(
    statuses.filter((status) => ![200, 409, 413, 502, 503].includes(status)),
    [],
  );
  const used = async () => (await server.status()).limits.find(({ name }) => name === 'memory of callers')?.used;
  t.ok(await eventually(async () => (await used()) === 0), 'the memory is free again');
}

const chat = (content: string, session: string) => ({
  model: 'assistant',
  session_id: session,
  messages: [{ role: 'user', content }],
});

t.test('S-51 forks of a large conversation that run at once do not end the server', async (t) => {
  await survives(t, async (server, post) => {
    for (let turn = 0; turn < 5; turn++) await post('/v1/chat/completions', chat('x'.repeat(3 * MIB), 'large'));
    const { text } = await server.request('/v1/conversations', { headers: { authorization: `Bearer ${ATTACKER}` } });
    const [{ id }] = JSON.parse(text).data;
    for (let fork = 0; fork < 9; fork++) await post(`/v1/conversations/${id}/fork`, { id: `fork ${fork}` });
    const gate = Promise.withResolvers<void>();
    server.models.respond(async ({ body }) => {
      if (JSON.stringify(body.messages.at(-1)).includes('slow')) await gate.promise;
      return { text: 'ok' };
    });
    const running = Array.from({ length: 9 }, (_, fork) => post('/v1/chat/completions', chat('slow', `fork ${fork}`)));
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    gate.resolve();
    return (await Promise.all(running)).map(({ status }) => status);
  });
});

t.test('S-50 S-52 histories and items behind small requests do not end the server', async (t) => {
  await survives(t, async (server, post) => {
    let previous: string | undefined;
    for (let turn = 0; turn < 4; turn++) {
      const { text } = await post('/v1/responses', {
        model: 'assistant',
        input: 'x'.repeat(2 * MIB),
        ...(previous !== undefined && { previous_response_id: previous }),
      });
      previous = JSON.parse(text).id ?? previous;
    }
    const { text } = await post('/v1/responses', { model: 'assistant', input: 'much' });
    const [item] = JSON.parse(text).output;
    server.models.respond(async () => {
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return { text: 'ok' };
    });
    const references = Array<object>(2_000).fill({ type: 'item_reference', id: item.id });
    const sent = Array.from({ length: 20 }, () => [
      post('/v1/responses', { model: 'assistant', input: 'x', previous_response_id: previous, store: false }),
      post('/v1/responses/compact', { model: 'assistant', previous_response_id: previous }),
      post('/v1/responses', { model: 'assistant', input: [...references, { role: 'user', content: 'x' }] }),
    ]);
    return (await Promise.all(sent.flat())).map(({ status }) => status);
  });
});

t.test('S-53 bodies of many values do not end the server', async (t) => {
  await survives(t, async (server, post) => {
    server.models.respond(async () => {
      await new Promise((resolve) => setTimeout(resolve, 2_000));
      return { text: 'ok' };
    });
    const unused = Array<object>(195_000).fill({});
    const body = { model: 'assistant', messages: [{ role: 'user', content: 'x' }], unused };
    const sent = Array.from({ length: 30 }, () => post('/v1/chat/completions', body));
    return (await Promise.all(sent)).map(({ status }) => status);
  });
});

t.test('S-56 endless answers do not end the server', async (t) => {
  await survives(t, async (server, post) => {
    function* endless(): Generator<string> {
      for (;;) yield 'much '.repeat(2_000);
    }
    server.models.respond(({ body }) => {
      const said = JSON.stringify(body.messages.at(-1));
      if (said.includes('text')) return { text: endless() };
      return said.includes('reasoning') ? { reasoning: endless() } : { text: 'ok' };
    });
    const sent = Array.from({ length: 12 }, (_, at) =>
      post('/v1/chat/completions', {
        model: 'assistant',
        stream: true,
        messages: [{ role: 'user', content: at % 2 === 0 ? 'text' : 'reasoning' }],
      }),
    );
    return (await Promise.all(sent)).map(({ status }) => status);
  });
});

t.test('S-66 a thousand equal requests that join one turn do not end the server', async (t) => {
  await survives(t, async (server, post) => {
    const gate = Promise.withResolvers<void>();
    const part = 'x'.repeat(3_000);
    server.models.respond(({ body }) =>
      JSON.stringify(body.messages).includes('join') ? { text: [...Array(100).fill(part), gate.promise] } : { text: 'ok' },
    );
    const sent = Array.from({ length: 1_000 }, () => post('/v1/chat/completions', chat('join', 'one')));
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    gate.resolve();
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    t.equal(server.models.requests.filter(({ body }) => JSON.stringify(body).includes('join')).length, 1);
    t.ok(statuses.filter((status) => status === 200).length >= 20);
    return statuses;
  });
});

t.test('S-67 thirty sockets that watch a message of 9 MB do not end the server', async (t) => {
  await survives(t, async (server, post) => {
    await post('/v1/chat/completions', chat('x', 'watched'));
    const { text } = await server.request('/v1/conversations', { headers: { authorization: `Bearer ${ATTACKER}` } });
    const conversation = JSON.parse(text).data[0].id;
    const sockets = await Promise.all(Array.from({ length: 30 }, () => LiveSocket.open(t, server, { token: ATTACKER })));
    for (const socket of sockets) {
      socket.send({ type: 'svc:conversation.watch', conversation });
      await socket.until('svc:conversation.watched');
      socket.ws.pause();
    }
    const gate = Promise.withResolvers<void>();
    server.models.respond(async ({ body }) => {
      if (JSON.stringify(body.messages.at(-1)).includes('slow')) await gate.promise;
      return { text: 'ok' };
    });
    const asked = post('/v1/chat/completions', chat(`slow ${'x'.repeat(9 * MIB)}`, 'watched'));
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    gate.resolve();
    const { status } = await asked;
    for (const socket of sockets) socket.ws.terminate();
    return [status];
  });
});

t.test('S-53 what has ended holds nothing of its request', async (t) => {
  const server = await ServerProcess.start(t, { yaml: YAML, heap: HEAP, collectsGarbage: true });
  server.models.respond(() => ({ text: 'ok' }));
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${ATTACKER}` };
  const send = (method: string, path: string, body: unknown) =>
    server.request(path, { method, headers, body: JSON.stringify(body) });
  const text = 'x'.repeat(3 * MIB);
  const before = await server.liveHeap();
  for (let at = 0; at < 36; at++) {
    const { text: created } = await send('POST', '/v1/conversations', { agent: 'assistant' });
    const { id: conversation } = JSON.parse(created);
    const items = [{ type: 'message', role: 'user', content: `${at} ${text}` }];
    t.match(await send('POST', `/v1/conversations/${conversation}/items`, { items }), { status: 200 });
    const response = { model: 'assistant', input: `${at} ${text}`, stream: true, conversation };
    t.match(await send('POST', '/v1/responses', response), { status: 200 });
  }
  const grown = (await server.liveHeap()) - before;
  t.comment(`${Math.round(grown / MIB)} MiB after 216 MiB`);
  t.ok(grown < 120 * MIB, 'histories stay, which are counted, up to half of the heap');
});
