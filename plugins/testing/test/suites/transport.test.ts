import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';
import t from 'tap';
import { type OpenedTransport, transportContract } from '../../src/suites/transport.js';
import { casesOf, failing } from '../failing.js';

/** A TCP server as a transport. */
function tcp(change: (server: Server, correct: OpenedTransport) => Partial<OpenedTransport['lifecycle']> = () => ({})) {
  const server = createServer((socket) => void open.add(socket.on('error', () => {})));
  const open = new Set<{ destroy(): unknown }>();
  t.teardown(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const correct: OpenedTransport = {
    transport: {
      address: () => (server.listening ? `tcp://127.0.0.1:${(server.address() as AddressInfo).port}` : undefined),
    },
    lifecycle: {
      stopLimit: 300,
      start: async () => void (await once(server.listen(0, '127.0.0.1'), 'listening')),
      stop: async () => {
        if (!server.listening) return;
        const closed = once(server, 'close');
        server.close();
        for (const socket of open) socket.destroy();
        await closed;
      },
    },
  };
  return { ...correct, lifecycle: { ...correct.lifecycle, ...change(server, correct) } };
}

const found = (open: () => OpenedTransport) => failing(casesOf((test) => transportContract(test, { open })));

const BEFORE = 'has no address before it runs';
const URL_ADDRESS = 'has a URL as its address once it runs';
const ACCEPTS = 'accepts connections once it has started';
const AFTER = 'accepts no connection after it has stopped';
const OPEN = 'stops while a connection is open';
const TWICE = 'stops without having started, and twice';

t.test('passes a correct transport', async (t) => {
  t.same(await found(() => tcp()), []);
});

t.test('finds each broken promise', async (t) => {
  t.same(await found(() => ({ ...tcp(), transport: { address: () => 'http://127.0.0.1:1' } })), [BEFORE, ACCEPTS, OPEN]);
  t.same(await found(() => ({ ...tcp(), transport: { address: () => undefined } })), [URL_ADDRESS, ACCEPTS, AFTER, OPEN]);
  t.same(await found(() => tcp(() => ({ stop: () => undefined }))), [AFTER]);
  const waits = (server: Server) => ({
    stop: async () => {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close(); // waits for open connections
      await closed;
    },
  });
  t.same(await found(() => tcp(waits)), [OPEN]);
  const once_ = (server: Server) => ({
    stop: () => {
      if (!server.listening) throw new Error('not running');
      return tcpStop(server);
    },
  });
  t.ok((await found(() => tcp(once_))).includes(TWICE));
});

function tcpStop(server: Server): void {
  server.close();
}
