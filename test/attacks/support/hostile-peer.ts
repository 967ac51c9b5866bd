import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** How far a peer goes with a connection before it turns hostile. */
export const STATES = [
  'connected',
  'half a head',
  'half a body',
  'waiting',
  'mid-stream',
  'after the reply',
  'CONNECT',
  'upgrade',
] as const;
export type State = (typeof STATES)[number];

/** What it does then. */
export const ACTIONS = ['reset', 'half-close', 'zero window', 'one byte at a time', 'garbage'] as const;
export type Action = (typeof ACTIONS)[number];

/** What the hostile peer sends with its requests. */
export interface PeerOptions {
  readonly port: number;
  readonly token?: string;
  /** From 0 to 1, 1 excluded: where things are cut, and how long the peer waits. */
  fraction(): number;
}

/** A peer that misuses one connection. Never throws: whatever the server does to it is fine. */
export class HostilePeer {
  readonly #options: PeerOptions;
  #socket: Socket | undefined;
  #received = '';

  constructor(options: PeerOptions) {
    this.#options = options;
  }

  /** What the server sent. */
  get received(): string {
    return this.#received;
  }

  /** Brings a connection into the state, misuses it, and closes it. */
  async play(state: State, action: Action): Promise<void> {
    const socket = connect({ port: this.#options.port, host: '127.0.0.1', allowHalfOpen: true });
    this.#socket = socket;
    socket.on('error', () => {});
    socket.on('data', (data) => {
      this.#received += data;
    });
    try {
      await once(socket, 'connect');
      await this.#reach(state, socket);
      await this.#act(action, socket);
    } catch {
      // the server was faster
    } finally {
      socket.destroy();
    }
  }

  async #reach(state: State, socket: Socket): Promise<void> {
    switch (state) {
      case 'connected':
        return;
      case 'half a head':
        socket.write(this.#cut(this.#head('POST', '/v1/chat/completions', 10)));
        break;
      case 'half a body':
        socket.write(this.#head('POST', '/v1/chat/completions', 100) + this.#cut('{"model":"assistant","messages":['));
        break;
      case 'waiting':
        socket.write(this.#request({ model: 'assistant', messages: [{ role: 'user', content: 'wait' }] }));
        break;
      case 'mid-stream':
        socket.write(this.#request({ model: 'assistant', messages: [{ role: 'user', content: 'stream' }], stream: true }));
        await this.#until('data: ');
        break;
      case 'after the reply':
        socket.write(this.#head('GET', '/health', 0));
        await this.#until('"ready"');
        break;
      case 'CONNECT':
        socket.write('CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n');
        break;
      case 'upgrade':
        socket.write(
          `GET /v1/responses HTTP/1.1\r\nHost: localhost\r\n${this.#authorization()}Connection: Upgrade\r\nUpgrade: websocket\r\n` +
            'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n',
        );
    }
    await this.#pause();
  }

  async #act(action: Action, socket: Socket): Promise<void> {
    switch (action) {
      case 'reset':
        socket.resetAndDestroy();
        return;
      case 'half-close':
        socket.end();
        break;
      case 'zero window':
        socket.pause();
        socket.write(this.#head('GET', '/health', 0).repeat(50));
        break;
      case 'one byte at a time':
        for (const byte of this.#head('GET', '/health', 0).slice(0, 20)) {
          socket.write(byte);
          await this.#pause();
        }
        break;
      case 'garbage':
        socket.write(Buffer.from(Array.from({ length: 2_000 }, () => Math.floor(this.#options.fraction() * 256))));
    }
    await this.#pause();
    if (this.#options.fraction() < 0.5) socket.resetAndDestroy();
  }

  #head(method: string, path: string, length: number): string {
    const lines = [
      `${method} ${path} HTTP/1.1`,
      'Host: localhost',
      'Content-Type: application/json',
      `Content-Length: ${length}`,
    ];
    return `${lines.join('\r\n')}\r\n${this.#authorization()}\r\n`;
  }

  #request(body: object): string {
    const text = JSON.stringify(body);
    return this.#head('POST', '/v1/chat/completions', text.length) + text;
  }

  #authorization(): string {
    const { token } = this.#options;
    return token === undefined ? '' : `Authorization: Bearer ${token}\r\n`;
  }

  /** A piece of the text that is neither empty nor whole. */
  #cut(text: string): string {
    return text.slice(0, 1 + Math.floor(this.#options.fraction() * (text.length - 2)));
  }

  async #until(text: string): Promise<void> {
    const socket = this.#socket;
    while (socket && !this.#received.includes(text)) {
      if (socket.readableEnded || socket.destroyed) return;
      await Promise.race([once(socket, 'data'), once(socket, 'end'), once(socket, 'close')]);
    }
  }

  #pause(): Promise<void> {
    const ms = Math.floor(this.#options.fraction() * 6);
    return new Promise((resolve) => (ms === 0 ? setImmediate(resolve) : setTimeout(resolve, ms)));
  }
}
