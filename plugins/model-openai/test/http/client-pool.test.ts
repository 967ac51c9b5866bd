import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import type { Dispatcher } from 'undici';
import { ClientPool } from '../../src/http/client-pool.js';

/** Starts a pool of sockets and its server, whose answers the test sends. */
async function start(t: Test) {
  const requests: { readonly req: IncomingMessage; readonly res: ServerResponse }[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((req, res) => requests.push({ req, res }));
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const pool = new ClientPool(`http://127.0.0.1:${port}`, 1_000);
  t.teardown(async () => {
    await pool.destroy();
    server.close();
    server.closeAllConnections();
  });
  return { pool, requests, sockets };
}

function send(pool: ClientPool, headers: Record<string, string> = {}): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let body = '';
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart: () => {},
    onResponseStart: () => {},
    onResponseData: (_controller, chunk) => {
      body += chunk.toString();
    },
    onResponseEnd: () => resolve(body),
    onResponseError: (_controller, error) => reject(error),
  };
  pool.dispatch({ method: 'POST', path: '/', headers, body: '{}' }, handler);
  return promise;
}

t.test('each concurrent request has a socket, and later requests use the free ones', async (t) => {
  const { pool, requests, sockets } = await start(t);
  const open = [send(pool), send(pool), send(pool)];
  await eventually(() => requests.length === 3);
  t.equal(sockets.size, 3);
  requests[1]?.res.end('second');
  t.equal(await open[1], 'second');
  await setImmediate(); // undici frees the socket after it has reported the end
  for (let more = 0; more < 5; more++) {
    const sent = send(pool);
    await eventually(() => requests.length === 4 + more);
    t.equal(requests.at(-1)?.req.socket, requests[1]?.req.socket, 'the only free socket');
    requests.at(-1)?.res.end('more');
    t.equal(await sent, 'more');
    await setImmediate();
  }
  for (const { res } of requests) if (!res.writableEnded) res.end('rest');
  t.strictSame(await Promise.all([open[0], open[2]]), ['rest', 'rest']);
  t.equal(sockets.size, 3);
});

t.test('a socket that its server closed is replaced', async (t) => {
  const { pool, requests, sockets } = await start(t);
  for (let round = 1; round <= 3; round++) {
    const sent = send(pool);
    await eventually(() => requests.length === round);
    requests.at(-1)?.res.writeHead(200, { connection: 'close' }).end('done');
    t.equal(await sent, 'done');
    await eventually(() => sockets.size === 0);
  }
});

t.test('an invalid request is reported and occupies no socket', async (t) => {
  const { pool, requests, sockets } = await start(t);
  await t.rejects(send(pool, { 'x-bad': 'line\nbreak' }), { code: 'UND_ERR_INVALID_ARG' });
  const sent = send(pool);
  await eventually(() => requests.length === 1);
  requests[0]?.res.end('fine');
  t.equal(await sent, 'fine');
  t.equal(sockets.size, 1);
});

t.test('a server that cannot be reached, and a destroyed pool, fail the request', async (t) => {
  const { pool } = await start(t);
  const unreachable = new ClientPool('http://127.0.0.1:1', 1_000);
  await t.rejects(send(unreachable), { code: 'ECONNREFUSED' });
  await t.rejects(send(unreachable), { code: 'ECONNREFUSED' }, 'and is tried again');
  await unreachable.destroy();
  await pool.destroy();
  await t.rejects(send(pool), { code: 'UND_ERR_DESTROYED' });
});
