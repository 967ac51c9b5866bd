/** More connections than a server can hold (S-47). Each server is a separate process. */
import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { ASSISTANT, saying, TRANSPORTS } from '../../support/test-server.js';
import { ServerProcess } from '../support/server-process.js';

/** The limit of the server's process, and the connections that one address opens. */
const [DESCRIPTORS, IDLE] = [1_024, 1_000];

/** Opens connections that send nothing. @returns them, and what the server sent on each. */
async function idle(t: Test, port: number, count: number): Promise<{ sockets: Socket[]; received: string[] }> {
  const sockets: Socket[] = [];
  const received: string[] = [];
  for (let at = 0; at < count; at++) {
    const socket = connect(port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    socket.on('error', () => {});
    socket.on('data', (data) => {
      received[at] = `${received[at] ?? ''}${data}`;
    });
    sockets.push(socket);
    await once(socket, 'connect');
  }
  return { sockets, received };
}

/** Runs a turn from another address of this machine. @returns the status. */
async function turnFrom(address: string, port: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const headers = { 'content-type': 'application/json' };
  const options = {
    host: '127.0.0.1',
    port,
    localAddress: address,
    method: 'POST',
    path: '/v1/chat/completions',
    headers,
    agent: false,
  };
  const sent = request(options, (response) => {
    response.resume();
    response.once('end', () => resolve(response.statusCode ?? 0));
  });
  sent.once('error', reject);
  sent.end(JSON.stringify(saying('Hello')));
  return promise;
}

t.test('S-47 idle connections leave descriptors for other callers and for model servers', async (t) => {
  const server = await ServerProcess.start(t, { yaml: TRANSPORTS + ASSISTANT, descriptors: DESCRIPTORS });
  const { sockets, received } = await idle(t, server.port, IDLE);
  await eventually(() => received.filter(Boolean).length >= IDLE - (DESCRIPTORS / 2) * (3 / 4));
  t.match(received.at(-1), /^HTTP\/1\.1 503 .*retry-after: \d.*`transports\.http\.maxConnections`/s);
  t.ok(sockets.at(-1)?.readableEnded || (await once(sockets.at(-1) as Socket, 'close')), 'and it is closed');
  for (let turn = 0; turn < 5; turn++) t.equal(await turnFrom('127.0.0.2', server.port), 200);
  await server.logs('limit reached: connections');

  for (const socket of sockets) socket.destroy();
  t.ok(
    await eventually(() =>
      turnFrom('127.0.0.1', server.port).then(
        (status) => status === 200,
        () => false,
      ),
    ),
    'they are free again',
  );
});

t.test('S-47 the connections of one address have a limit of their own if it is set', async (t) => {
  const yaml = TRANSPORTS.replace('port: 0', 'port: 0, maxConnectionsPerAddress: 5') + ASSISTANT;
  const server = await ServerProcess.start(t, { yaml });
  const { received } = await idle(t, server.port, 6);
  await eventually(() => received[5]);
  t.match(received[5], /^HTTP\/1\.1 503 /);
  t.equal(received.filter(Boolean).length, 1);
  t.equal(await turnFrom('127.0.0.2', server.port), 200);
});
