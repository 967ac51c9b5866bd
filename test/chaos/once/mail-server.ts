import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * What becomes of a request to send a mail:
 *
 * - `answer`: it is sent, and the answer arrives;
 * - `before`: the connection is cut, and nothing is sent;
 * - `after`, `half`: it is sent, and the connection is cut before or within the answer;
 * - `late`: it is sent, and the answer never comes;
 * - `held before`, `held after`: the same without or with a mail, until the server is killed.
 */
export type Fate = 'answer' | 'before' | 'after' | 'half' | 'late' | 'held before' | 'held after';

/** A mail server over real HTTP. Only `/keyed` honours keys; `/verified` tells what it has done. */
export class MailServer {
  /** How often each mail was sent, by subject. */
  readonly sent = new Map<string, number>();
  /** Answers that were cut, or never came. */
  cut = 0;
  /** Calls that a client has made with the key of another one. */
  readonly mixed: string[] = [];
  /** Decides about each request. */
  fate: () => Fate = () => 'answer';
  readonly #subjects = new Map<string, string>();
  readonly #server = createServer((request, response) => void this.#receive(request, response));
  #held = 0;
  #awaited: { readonly count: number; resolve(): void } | undefined;

  async start(): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Resolves when so many requests are held. */
  holds(count: number): Promise<void> {
    this.#held = 0;
    return new Promise((resolve) => {
      this.#awaited = { count, resolve };
    });
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://mail');
    if (request.method === 'GET') {
      response.end(this.#subjects.has(searchParams.get('key') ?? '') ? 'sent' : 'never');
      return;
    }
    const pieces: Buffer[] = [];
    try {
      for await (const piece of request) pieces.push(piece);
    } catch {
      return; // its client was killed
    }
    const { subject } = JSON.parse(Buffer.concat(pieces).toString());
    const key = String(request.headers['idempotency-key']);
    const send = () => this.#send(pathname, key, subject);
    const fate = this.fate();
    if (fate !== 'answer' && !fate.startsWith('held')) this.cut += 1;
    if (fate !== 'before' && fate !== 'held before') send();
    if (fate === 'answer') response.end('sent');
    else if (fate === 'before' || fate === 'after') response.destroy();
    else if (fate === 'half') response.writeHead(200, { 'content-length': 4 }).write('se', () => response.destroy());
    else if (fate !== 'late') this.#hold();
  }

  #send(pathname: string, key: string, subject: string): void {
    const known = this.#subjects.get(key);
    if (known !== undefined && known !== subject) this.mixed.push(`${key}: ${known} and ${subject}`);
    if (known !== undefined && pathname === '/keyed') return;
    this.#subjects.set(key, subject);
    this.sent.set(subject, (this.sent.get(subject) ?? 0) + 1);
  }

  #hold(): void {
    this.#held += 1;
    if (this.#awaited && this.#held >= this.#awaited.count) this.#awaited.resolve();
  }
}
