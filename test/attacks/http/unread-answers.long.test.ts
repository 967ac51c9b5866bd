/**
 * Large and endless answers over WebSocket that clients do not read, or break off, on servers in
 * processes of their own. `PLUGBOARD_SEED` repeats a run.
 */
import { once } from 'node:events';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { WebSocket } from 'ws';
import { LIVE_TRANSPORTS } from '../../support/live.js';
import { rounds } from '../../support/rounds.js';
import { seeded } from '../../support/seeded.js';
import { ASSISTANT } from '../../support/test-server.js';
import { Neighbour } from '../support/neighbour.js';
import { ServerProcess } from '../support/server-process.js';

const SEED = Number(process.env.PLUGBOARD_SEED ?? 24);
const MIB = 1024 * 1024;

const [HOSTILE, INNOCENT] = ['token-of-a-hostile-peer', 'token-of-the-neighbour'];
const TOKENS = `auth: { bearer: { tokens: [
  { name: hostile, project: default, token: ${HOSTILE} }, { name: neighbour, project: default, token: ${INNOCENT} } ] } }\n`;

t.setTimeout(300_000);

async function open(t: Test, server: ServerProcess): Promise<WebSocket> {
  const headers = { authorization: `Bearer ${HOSTILE}` };
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/v1/responses`, { headers });
  t.teardown(() => socket.terminate());
  socket.on('error', () => {});
  await once(socket, 'open');
  return socket;
}

function create(socket: WebSocket, input: string, fields: object = {}): void {
  socket.send(JSON.stringify({ type: 'response.create', model: 'assistant', input, ...fields }));
}

t.test('R-010 a reader that stops reading an endless answer costs at most 2.5 MiB', async (t) => {
  const READERS = 5;
  const server = await ServerProcess.start(t, { yaml: LIVE_TRANSPORTS + ASSISTANT + TOKENS, collectsGarbage: true });
  function* endless(token: string): Generator<string> {
    for (;;) yield token;
  }
  server.models.respond(({ body }) => {
    const said = JSON.stringify(body.messages.at(-1)?.content);
    if (said.includes('tokens')) return { text: endless(' token of text') };
    return said.includes('pages') ? { text: endless('page '.repeat(2_000)) } : { text: 'Hello' };
  });
  const first = await open(t, server);
  create(first, 'Hello');
  await new Promise<void>((resolve) =>
    first.on('message', (data) => String(data).startsWith('{"type":"response.completed"') && resolve()),
  );
  // The first round loads and compiles what the others use.
  for (const [kind, store] of [
    ['tokens', false],
    ['tokens', false],
    ['pages', false],
    ['tokens', true],
  ] as const) {
    const before = await server.liveHeap();
    const asked = server.models.requests.length;
    const readers: WebSocket[] = [];
    for (let reader = 0; reader < READERS; reader++) {
      const socket = await open(t, server);
      create(socket, kind, { store });
      await once(socket, 'message');
      socket.pause();
      readers.push(socket);
    }
    await server.models.received(asked + READERS);
    const requests = server.models.requests.slice(asked);
    let sent = -1;
    await eventually(async () => {
      const last = sent;
      sent = requests.reduce((sum, request) => sum + request.sent, 0);
      await new Promise((resolve) => setTimeout(resolve, 300));
      return sent === last;
    });
    const cost = Math.round(((await server.liveHeap()) - before) / READERS);
    t.ok(cost < 2.5 * MIB, `${cost} bytes for a reader of ${kind}, ${store ? 'stored' : 'not stored'}`);
    for (const socket of readers) socket.terminate();
    if (!store) await Promise.all(requests.map(({ ended }) => ended));
  }
});

t.test('large answers that clients do not read end no server with a small heap', async (t) => {
  const PEERS = 20;
  const ROUNDS = rounds({ short: 2, long: 15, soak: 60 });
  /** MiB. */
  const HEAP = 256;
  const limits = 'limits: { memory: 48mb }\n';
  const server = await ServerProcess.start(t, { yaml: LIVE_TRANSPORTS + ASSISTANT + TOKENS + limits, heap: HEAP });
  const much = Array<string>(300).fill('much '.repeat(2_000));
  server.models.respond(({ body }) => ({
    text: JSON.stringify(body.messages.at(-1)?.content).includes('much') ? much : ['Hello'],
  }));
  const neighbour = new Neighbour(server, { token: INNOCENT, streams: true });
  await eventually(() => neighbour.turns > 0);
  const fraction = seeded(SEED);
  let failures = 0;
  const pause = (most: number) => new Promise((resolve) => setTimeout(resolve, fraction() * most));

  const attack = async () => {
    for (let round = 0; round < ROUNDS && server.running; round++) {
      const socket = await open(t, server);
      socket.on('message', (data) => {
        const text = String(data);
        if (!text.includes('"overloaded"')) return;
        failures++;
        if (!text.includes('limits.memory')) t.fail(text.slice(0, 500));
      });
      for (const stream_id of ['a', 'b']) create(socket, 'much', { stream_id, store: fraction() < 0.7 });
      if (fraction() < 0.3) await pause(20);
      else if (fraction() < 0.5) {
        socket.pause();
        await pause(1_000);
      } else await pause(1_000);
      socket.terminate();
    }
  };
  await Promise.all(Array.from({ length: PEERS }, attack));
  t.ok(server.running, `the process lives (seed ${SEED})${server.running ? '' : server.stderr.slice(-2_000)}`);

  const callers = async () => (await server.status()).limits.find(({ name }) => name === 'memory of callers');
  // Together these do not fit, however slow the machine is.
  const unread = await Promise.all(Array.from({ length: PEERS }, () => open(t, server)));
  for (const socket of unread) {
    for (const stream_id of ['a', 'b', 'c', 'd']) create(socket, 'much', { stream_id });
    socket.pause();
  }
  t.ok(await eventually(async () => ((await callers())?.refused ?? 0) > 0), 'the budget refused something');
  for (const socket of unread) socket.terminate();
  t.ok(await server.isHealthy());
  const measured = await neighbour.stop();
  const replies = await callers();
  t.comment(`neighbour: ${JSON.stringify(measured)}, ${failures} responses failed, peak ${Math.round(server.peakMemory())} MiB`);
  t.same(measured.failures, {}, 'the other caller noticed nothing');
  t.ok(measured.turns > 0);
  t.ok((replies?.peak ?? 0) <= (replies?.limit ?? 0));
  t.ok(await eventually(async () => (await callers())?.used === 0), 'the memory is free again');
});
