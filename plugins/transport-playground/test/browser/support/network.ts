import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Test } from 'tap';
import type { TestServer } from '../../../../../test/support/test-server.js';

/** A network between the browser and a server, which a test cuts and mends. */
export class Network {
  readonly #sockets = new Set<Socket>();
  #target: string | undefined;
  #url = '';

  static async start(t: Test, target: TestServer): Promise<Network> {
    const network = new Network();
    network.#target = target.url;
    const server = createServer((socket) => network.#pass(socket));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    network.#url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    t.teardown(() => {
      network.cut();
      server.close();
    });
    return network;
  }

  get url(): string {
    return this.#url;
  }

  /** Breaks all connections, and every new one. */
  cut(): void {
    this.#target = undefined;
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Connections reach a server again. */
  mend(target: TestServer): void {
    this.#target = target.url;
  }

  #pass(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket));
    if (this.#target === undefined) return void socket.destroy();
    const { hostname, port } = new URL(this.#target);
    const other = connect(Number(port), hostname);
    other.on('error', () => socket.destroy()).on('close', () => socket.destroy());
    socket.on('close', () => other.destroy());
    socket.pipe(other).pipe(socket);
  }
}
