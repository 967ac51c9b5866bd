import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import type { Test } from 'tap';

/** A process that a witness watches. */
interface Watched {
  readonly pid: number;
  /** Resolves when the process has ended, however it did. */
  readonly gone: Promise<unknown>;
}

/**
 * Watches processes that are not children of the test: each holds a connection to it for as long as
 * it lives.
 */
export async function witness(t: Test): Promise<{ readonly port: number; next(): Promise<Watched> }> {
  const arrived: Watched[] = [];
  let wanted: ((watched: Watched) => void) | undefined;
  const server = createServer((socket) => {
    socket.on('error', () => {}); // a reset is an end as well
    const gone = once(socket, 'close');
    createInterface(socket).once('line', (line) => {
      arrived.push({ pid: Number(line), gone });
      give();
    });
    socket.resume();
  });
  const give = () => {
    const first = wanted && arrived.shift();
    if (!first) return;
    wanted?.(first);
    wanted = undefined;
  };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return {
    port: (server.address() as AddressInfo).port,
    next: () =>
      new Promise((resolve) => {
        wanted = resolve;
        give();
      }),
  };
}
