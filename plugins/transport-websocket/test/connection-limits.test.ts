/**
 * More sockets than a server can hold. The server is a process of its own, with few descriptors.
 */
import { once } from 'node:events';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { ServerProcess } from '../../../test/attacks/support/server-process.js';
import { LIVE_TRANSPORTS } from '../../../test/support/live.js';
import { LiveSocket, textOf } from '../../../test/support/live-socket.js';
import { wholeReply } from '../../../test/support/raw-exchange.js';
import { ASSISTANT } from '../../../test/support/test-server.js';
import { RawClient } from '../../transport-http/test/support/raw-client.js';
import { handshake } from './support/frames.js';

t.test('S-47 sockets of one address have a limit, and those of another address are served', async (t) => {
  const server = await ServerProcess.start(t, { yaml: LIVE_TRANSPORTS + ASSISTANT });
  const open = [];
  for (let at = 0; at < 50; at++) open.push(await LiveSocket.open(t, server));
  const refused = await LiveSocket.refused(t, server);
  t.match(refused, { status: 429, error: { code: 'connection_limit_exceeded', message: /`maxConnectionsPerAddress`/ } });
  t.ok(refused.headers['retry-after']);
  const other = await LiveSocket.open(t, server, { localAddress: '127.0.0.2' });
  t.equal(textOf(await other.ask({ model: 'assistant', input: 'Hello' })), 'Hello');
  for (const { ws } of open) ws.terminate();
  const again = await eventually(() => LiveSocket.open(t, server).catch(() => undefined));
  t.equal(textOf(await again.ask({ model: 'assistant', input: 'Again' })), 'Again');
});

t.test('S-47 idle sockets leave descriptors for other callers and for model servers', async (t) => {
  const yaml = LIVE_TRANSPORTS.replace('websocket: {}', 'websocket: { maxConnectionsPerAddress: 1000 }') + ASSISTANT;
  const server = await ServerProcess.start(t, { yaml, descriptors: 256 });
  const open = [];
  for (let at = 0; at < (128 * 3) / 4; at++) open.push(await LiveSocket.open(t, server));
  const raw = await RawClient.open(server.port);
  raw.send(...handshake('/v1/live'));
  const { status, headers, body } = await wholeReply(raw);
  t.equal(status, 503);
  t.ok(headers['retry-after']);
  t.match(body, /`transports\.http\.maxConnections`/);
  if (!raw.socket.readableEnded) await once(raw.socket, 'end');
  for (let turn = 0; turn < 5; turn++) {
    const other = await LiveSocket.open(t, server, { localAddress: '127.0.0.2' });
    t.equal(textOf(await other.ask({ model: 'assistant', input: `${turn}` })), `${turn}`);
  }
  for (const { ws } of open) ws.terminate();
  t.ok(await eventually(() => LiveSocket.open(t, server).catch(() => undefined)), 'closed sockets make room');
});
