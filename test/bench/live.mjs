// Prints what the live surface costs: CPU per token on a WebSocket and on an event stream of
// responses, beside chat completions; the memory of a stalled reader; the memory of idle sockets.
// See README.md.
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { HERE, startModel, startPlugboard } from './servers.mjs';
import { format, summary } from './statistics.mjs';

const ROUNDS = Number(process.env.ROUNDS ?? 5);
/** Turns of 100 tokens in a burst, per round. */
const TURNS = Number(process.env.TURNS ?? 400);
const TOKENS = 100;
/** Callers at once, at 50 tokens per second each. */
const CALLERS = 50;
const STALLED = 20;
const IDLE = Number(process.env.IDLE ?? 2_000);

const model = await startModel();
const server = await startPlugboard('plugboard', { checkout: HERE, modelPort: model.port, config: 'live.yaml' });
process.on('exit', () => model.child.kill());
const http = `http://127.0.0.1:${server.port}`;
const sockets = [];

console.log(`Node ${process.version}, ${ROUNDS} rounds; the median, the lowest and the highest\n`);
await idle(); // first, while nothing else is in memory
await stalled();
await tokens();
server.stop();
process.exit(0);

/** CPU of the server per token, for each surface in turn. */
async function tokens() {
  const surfaces = {
    'chat completions, SSE': (kind) =>
      stream('/v1/chat/completions', { messages: [{ role: 'user', content: kind }], stream: true }),
    'responses, SSE': (kind) => stream('/v1/responses', { input: kind, stream: true, store: false }),
    'responses, WebSocket': (kind, client) => turn(client, kind),
  };
  for (let client = 0; client < CALLERS; client++) sockets.push(await open());
  for (const [kind, name, clients, turns] of [
    ['burst', `${TOKENS} tokens in a burst, 4 callers`, 4, TURNS],
    ['paced', `50 tokens per second, ${CALLERS} callers`, CALLERS, CALLERS * 2],
  ]) {
    const costs = Object.fromEntries(Object.keys(surfaces).map((surface) => [surface, []]));
    for (let round = -1; round < ROUNDS; round++) {
      for (const [surface, run] of Object.entries(surfaces)) {
        const before = await server.cpu();
        await Promise.all(
          Array.from({ length: clients }, async (_, client) => {
            for (let at = 0; at < turns / clients; at++) await run(kind, client);
          }),
        );
        const cost = ((await server.cpu()) - before) / (turns * TOKENS);
        if (round >= 0) costs[surface].push(cost); // the first round warms up
      }
    }
    console.log(`CPU of the server per token (µs), ${name}`);
    for (const [surface, values] of Object.entries(costs)) console.log(`  ${surface.padEnd(24)} ${format(summary(values))}`);
    console.log();
  }
}

async function stream(path, body) {
  const reply = await fetch(http + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'assistant', ...body }),
  });
  if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
  for await (const _ of reply.body);
}

async function open() {
  const socket = new WebSocket(`${http.replace('http', 'ws')}/v1/responses`, { perMessageDeflate: false });
  await once(socket, 'open');
  return socket;
}

function turn(client, input) {
  const socket = sockets[client];
  socket.send(JSON.stringify({ type: 'response.create', model: 'assistant', input, store: false }));
  return new Promise((resolve, reject) => {
    socket.onmessage = ({ data }) => {
      if (data.startsWith('{"type":"response.completed"')) resolve();
      else if (data.startsWith('{"type":"error"') || data.startsWith('{"type":"response.failed"')) reject(new Error(data));
    };
  });
}

/** Readers that stop reading an endless answer. */
async function stalled() {
  await turnOnce();
  const before = await server.memory();
  const readers = [];
  for (let at = 0; at < STALLED; at++) {
    const socket = await open();
    socket.send(JSON.stringify({ type: 'response.create', model: 'assistant', input: 'flood', store: false }));
    await once(socket, 'message');
    socket.pause();
    readers.push(socket);
  }
  await sleep(5_000);
  report(`a reader that has stopped reading an endless answer, ${STALLED} of them`, before, await server.memory(), STALLED);
  for (const socket of readers) socket.terminate();
  await sleep(500);
}

async function idle() {
  await turnOnce();
  const before = await server.memory();
  const open_ = [];
  for (let at = 0; at < IDLE; at += 50) open_.push(...(await Promise.all(Array.from({ length: 50 }, open))));
  await sleep(2_000);
  report(`an idle socket, ${IDLE} of them`, before, await server.memory(), IDLE);
  for (const socket of open_) socket.terminate();
  await sleep(500);
}

/** Loads what a first turn loads. */
async function turnOnce() {
  sockets.push(await open());
  await turn(0, 'burst');
  sockets.pop().close();
}

function report(what, before, after, count) {
  const each = (field) => `${((after[field] - before[field]) / count / 1024).toFixed(1)} KiB`;
  console.log(`Memory of ${what}: ${each('heap')} of live heap, ${each('rss')} resident\n`);
}
