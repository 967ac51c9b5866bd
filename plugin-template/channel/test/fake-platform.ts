import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

interface Message {
  readonly id: number;
  readonly chat: string;
  readonly sender: string;
  readonly text: string;
}

interface Reply {
  readonly id: string;
  readonly chat: string;
  readonly text: string;
  /** The id of the message that it answers. */
  readonly replyTo?: string;
}

/** A platform over real HTTP. It keeps messages and replies, each id once. */
export class FakePlatform {
  readonly messages: Message[] = [];
  /** In order. */
  readonly replies: Reply[] = [];
  /** Replies that were sent, those that it had already included. */
  sent = 0;
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
      const reply = JSON.parse(body) as Reply;
      this.sent++;
      if (status === 200 && !this.replies.some(({ id }) => id === reply.id)) this.replies.push(reply);
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
