import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { Test } from 'tap';

/** The secret of the tests: that of the documentation. */
export const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

/** A reply as it arrived, and as the package `standardwebhooks` has verified it. */
export interface Received {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** How the receiver answers a reply. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A program that sends signed messages, and receives signed replies, with `standardwebhooks`. */
export class Receiver {
  /** Replies that it took, each id once. */
  readonly replies: Received[] = [];
  /** Every attempt. */
  readonly attempts: Received[] = [];
  /** What it answers to the next attempts; then 204. `nothing`: it does not answer. */
  readonly answers: (Answer | 'nothing')[] = [];
  /** Called when an attempt arrives, before it is answered. */
  onAttempt: () => void = () => {};
  /** Attempts that did not verify. */
  readonly forged: unknown[] = [];
  readonly #webhook: Webhook;
  readonly #server = createServer();

  private constructor(secret: string) {
    this.#webhook = new Webhook(secret);
    this.#server.on('request', async (request, response) => {
      let text = '';
      for await (const chunk of request.setEncoding('utf8')) text += chunk;
      const { headers } = request;
      const id = String(headers['webhook-id']);
      try {
        const body = this.#webhook.verify(text, headers as Record<string, string>) as Received['body'];
        const answer = this.answers.shift() ?? { status: 204 };
        this.attempts.push({ id, headers, text, body });
        this.onAttempt();
        if (answer === 'nothing') return;
        const isKnown = this.replies.some((one) => one.id === id);
        if (answer.status < 300 && !isKnown) this.replies.push({ id, headers, text, body });
        response.writeHead(answer.status, answer.headers).end();
      } catch (error) {
        this.forged.push(error);
        response.writeHead(400).end();
      }
    });
  }

  static async start(t: Test, secret = SECRET): Promise<Receiver> {
    const receiver = new Receiver(secret);
    await once(receiver.#server.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => receiver.stop());
    return receiver;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/replies?secret=no`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** The three headers of a message, as the package makes them. */
  sign(id: string, body: string, at = new Date()): Record<string, string> {
    return {
      'webhook-id': id,
      'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)),
      'webhook-signature': this.#webhook.sign(id, at, body),
    };
  }

  verifies(text: string, headers: IncomingHttpHeaders): boolean {
    return this.#webhook.verify(text, headers as Record<string, string>) !== undefined;
  }

  /** Sends a signed message. */
  async say(address: string, id: string, message: object, more: { readonly at?: Date; readonly signal?: AbortSignal } = {}) {
    const body = JSON.stringify(message);
    const headers = { 'content-type': 'application/json', ...this.sign(id, body, more.at) };
    const response = await fetch(address, { method: 'POST', headers, body, ...(more.signal && { signal: more.signal }) });
    return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> };
  }
}
