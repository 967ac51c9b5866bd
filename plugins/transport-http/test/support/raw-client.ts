import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A connection that sends bytes as they are given, and shows what came back. */
export class RawClient {
  readonly socket: Socket;
  #received = '';
  #failure: Error | undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.#received += text;
    });
    socket.on('error', (error) => {
      this.#failure = error;
    });
  }

  static async open(port: number): Promise<RawClient> {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    await once(socket, 'connect');
    return new RawClient(socket);
  }

  get received(): string {
    return this.#received;
  }

  get failure(): Error | undefined {
    return this.#failure;
  }

  send(...lines: readonly string[]): void {
    this.socket.write(lines.join('\r\n'), 'latin1');
  }

  /** What was received, once it matches. @throws where the connection ends before. */
  async until(pattern: RegExp): Promise<string> {
    while (!pattern.test(this.#received)) {
      if (this.socket.readableEnded || this.socket.destroyed) throw new Error(`the connection ended after:\n${this.#received}`);
      await Promise.race([once(this.socket, 'data'), once(this.socket, 'end'), once(this.socket, 'close')]);
    }
    return this.#received;
  }

  /** All that was received, once the server has sent its end, or has reset the connection. */
  async ended(): Promise<string> {
    if (!this.socket.readableEnded && !this.socket.destroyed) {
      await Promise.race([once(this.socket, 'end'), once(this.socket, 'close').catch(() => {})]).catch(() => {});
    }
    this.socket.destroy();
    return this.#received;
  }
}

export interface RawReply {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Takes the first reply off what was received. */
export function replyOf(received: string): RawReply {
  const [head = '', ...rest] = received.split('\r\n\r\n');
  const [statusLine = '', ...lines] = head.split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  return { status: Number(statusLine.split(' ')[1]), headers, body: rest.join('\r\n\r\n') };
}
