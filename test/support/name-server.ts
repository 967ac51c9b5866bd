import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { Test } from 'tap';

/**
 * A name server that answers every question with these IPv4 addresses, as Docker's does for a
 * service. @returns its port.
 */
export async function startNameServer(t: Test, addresses: () => readonly string[]): Promise<number> {
  const socket = createSocket('udp4');
  socket.on('message', (query, { address, port }) => {
    const question = query.subarray(12, query.indexOf(0, 12) + 5);
    const found = addresses();
    // The id of the query, "an answer without an error", one question, and so many answers.
    const head = Buffer.from([...query.subarray(0, 2), 0x81, 0x80, 0, 1, 0, found.length, 0, 0, 0, 0]);
    // The name of the question, an address (A) of the internet, valid for one second, 4 bytes.
    const answers = found.map((ip) => Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, ...ip.split('.').map(Number)]));
    socket.send(Buffer.concat([head, question, ...answers]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(() => socket.close());
  return socket.address().port;
}
