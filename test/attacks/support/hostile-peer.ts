import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** How far a peer goes with a connection before it turns hostile. */
export const STATES = [
  'connected',
  'half a head',
  'half a body',
  'waiting',
  'mid-stream',
  'large answer',
  'after the reply',
  'CONNECT',
  'upgrade',
  'upgraded',
] as const;
type State = (typeof STATES)[number];

/** What it does then. */
export const ACTIONS = ['reset', 'half-close', 'zero window', 'one byte at a time', 'garbage'] as const;
type Action = (typeof ACTIONS)[number];

/** What the hostile peer sends with its requests. */
interface PeerOptions {
  readonly port: number;
  readonly token?: string;
  /** From 0 to 1, 1 excluded: where things are cut, and how long the peer waits. */
  fraction(): number;
  /**
   * How many of the peers that send byte by byte send one byte a second, from 0 to 1. The others
   * are faster.
   */
  readonly slow?: number;
}

/** Bytes that a peer sends one by one; the slow peer sends only the first few, one a second. */
const [BYTES, SLOW_BYTES] = [20, 4];

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
      case 'large answer':
        socket.write(this.#request({ model: 'assistant', messages: [{ role: 'user', content: 'much' }], stream: true }));
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
        socket.write(this.#upgrade());
        break;
      case 'upgraded':
        socket.write(this.#upgrade());
        await this.#until('\r\n\r\n');
        socket.write(
          frame({ type: 'response.create', model: 'assistant', input: this.#options.fraction() < 0.5 ? 'wait' : 'much' }),
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
        await this.#trickle(socket);
        break;
      case 'garbage':
        socket.write(Buffer.from(Array.from({ length: 2_000 }, () => Math.floor(this.#options.fraction() * 256))));
    }
    await this.#pause();
    // Node.js never closes a socket that is reset while its end is being sent, and its process then
    // never ends.
    const isEnding = socket.writableEnded && !socket.writableFinished;
    if (this.#options.fraction() < 0.5 && !isEnding) socket.resetAndDestroy();
  }

  async #trickle(socket: Socket): Promise<void> {
    const isSlow = this.#options.fraction() < (this.#options.slow ?? 0);
    for (const byte of this.#head('GET', '/health', 0).slice(0, isSlow ? SLOW_BYTES : BYTES)) {
      socket.write(byte);
      await (isSlow ? new Promise((resolve) => setTimeout(resolve, 1_000)) : this.#pause());
    }
  }

  #upgrade(): string {
    return (
      `GET /v1/responses HTTP/1.1\r\nHost: localhost\r\n${this.#authorization()}Connection: Upgrade\r\nUpgrade: websocket\r\n` +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
    );
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

  /** A part of the text, not empty and not the whole. */
  #cut(text: string): string {
    return text.slice(0, 1 + Math.floor(this.#options.fraction() * (text.length - 2)));
  }

  /**
   * Waits until the server has sent this, has refused the request, or has closed the connection.
   */
  async #until(text: string): Promise<void> {
    const socket = this.#socket;
    while (socket && !this.#received.includes(text) && !/^HTTP\/1\.1 [45]/m.test(this.#received)) {
      if (socket.readableEnded || socket.destroyed) return;
      await Promise.race([once(socket, 'data'), once(socket, 'end'), once(socket, 'close')]);
    }
  }

  #pause(): Promise<void> {
    const ms = Math.floor(this.#options.fraction() * 6);
    return new Promise((resolve) => (ms === 0 ? setImmediate(resolve) : setTimeout(resolve, ms)));
  }
}

/** A text frame of a WebSocket client, masked with zeros (RFC 6455, 5.2). */
function frame(message: object): Buffer {
  const text = Buffer.from(JSON.stringify(message));
  return Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), text]);
}
