import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Incoming, Reply } from '../src/platform.ts';

/** A platform over real HTTP. It keeps messages and counts replies. */
export class FakePlatform {
  readonly messages: Incoming[] = [];
  /** Every reply that was sent, in order. */
  readonly replies: Reply[] = [];
  /** The status of the next answers to replies; 200 when there are none left. */
  readonly statuses: number[] = [];
  /** The polls that are open now, and the most at once. */
  polls = 0;
  maxPolls = 0;
  readonly #server = createServer((request, response) => void this.#handle(request, response));

  async start(): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  say(text: string, chat = 'c1'): void {
    this.messages.push({ id: this.messages.length + 1, chat, sender: `${chat}-anna`, text });
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.headers.authorization !== 'Bearer secret') return void response.writeHead(401).end();
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://platform');
    if (pathname === '/replies') {
      let body = '';
      for await (const chunk of request.setEncoding('utf8')) body += chunk;
      const status = this.statuses.shift() ?? 200;
      if (status === 200) this.replies.push(JSON.parse(body));
      return void response.writeHead(status).end();
    }
    this.polls++;
    this.maxPolls = Math.max(this.maxPolls, this.polls);
    response.on('close', () => this.polls--);
    const after = Number(searchParams.get('after'));
    const waiting = () => this.messages.filter(({ id }) => id > after);
    for (let n = 0; n < 50 && waiting().length === 0 && !response.destroyed; n++) await wait(10);
    response.setHeader('content-type', 'application/json').end(JSON.stringify(waiting()));
  }
}
