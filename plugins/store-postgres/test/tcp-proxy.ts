import { connect, createServer, type Socket } from 'node:net';
import type { Test } from 'tap';

/** A TCP proxy in front of a server, which cuts connections or lets them fall silent. */
export class TcpProxy {
  readonly #sockets = new Set<Socket>();
  #isSilent = false;
  /** Connections that were opened through it. */
  opened = 0;
  /** What the client is about to get: return false to drop it and cut the connection. */
  onAnswer: (bytes: Buffer) => boolean = () => true;
  /** The same for what the server is about to get. */
  onRequest: (bytes: Buffer) => boolean = () => true;
  port = 0;

  static async start(t: Test, target: number): Promise<TcpProxy> {
    const proxy = new TcpProxy();
    const server = createServer((client) => proxy.#accept(client, target));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    proxy.port = typeof address === 'object' && address ? address.port : 0;
    t.teardown(() => {
      server.close();
      proxy.cut();
    });
    return proxy;
  }

  /** The URL of a database behind the proxy. */
  through(url: string): string {
    const changed = new URL(url);
    changed.port = String(this.port);
    return changed.href;
  }

  /** Ends all connections, as a proxy does that is restarted. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** From now on the open connections carry nothing any more, and nothing says so. */
  silence(): void {
    for (const socket of this.#sockets) {
      socket.removeAllListeners('data');
      socket.on('data', () => {});
    }
  }

  /** Whether new connections carry nothing either. */
  set isSilent(silent: boolean) {
    this.#isSilent = silent;
  }

  #accept(client: Socket, target: number): void {
    this.opened++;
    const server = connect(target, '127.0.0.1');
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    if (this.#isSilent) return;
    client.on('data', (bytes) => {
      if (this.onRequest(bytes)) server.write(bytes);
      else client.destroy();
    });
    server.on('data', (bytes) => {
      if (this.onAnswer(bytes)) client.write(bytes);
      else client.destroy();
    });
  }
}
