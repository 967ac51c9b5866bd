import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { WebSocket } from 'ws';
import type { ServerProcess } from '../../attacks/support/server-process.js';
import type { Case } from './cases.js';
import type { Known } from './samples.js';

/** Milliseconds in which the server must have answered. */
const PATIENCE = 30_000;
/** Cases after which the attacker makes new responses and conversations. */
const REFRESH = 50;
/** Messages after which the attacker asks for a pong. */
const MAX_UNANSWERED = 4;

/** What became of the cases. */
export interface Outcomes {
  /** By status; `message` for those on a WebSocket. */
  readonly counts: Record<string, number>;
  /** Cases that were not answered in time, whose connection broke, or that the server failed at. */
  readonly faults: string[];
}

/** One caller, who sends cases on a few connections. Nothing that the server answers is wrong. */
export class Attacker {
  readonly outcomes: Outcomes = { counts: {}, faults: [] };
  readonly #server: ServerProcess;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent = new Agent({ keepAlive: true });
  #known: Known = { responses: [], items: [], conversations: [] };
  #asked = 0;
  #socket: WebSocket | undefined;
  #unanswered = 0;

  constructor(server: ServerProcess, token: string) {
    this.#server = server;
    this.#headers = { authorization: `Bearer ${token}` };
  }

  async send(one: Case): Promise<void> {
    const outcome = one.kind === 'socket' ? await this.#message(one) : await this.#request(one);
    const { counts, faults } = this.outcomes;
    counts[outcome] = (counts[outcome] ?? 0) + 1;
    if (!/^[1-4]\d\d$|^50[237]$|^529$|^message$/.test(outcome)) faults.push(`${outcome}: ${one.title}`);
  }

  close(): void {
    this.#agent.destroy();
    this.#socket?.terminate();
  }

  /** A few ids, new ones now and then: cases delete what they name. */
  async known(): Promise<Known> {
    if (this.#asked++ % REFRESH !== 0) return this.#known;
    try {
      this.#known = await this.#prepare();
    } catch {
      // The server has ended, which the test sees.
    }
    return this.#known;
  }

  async #prepare(): Promise<Known> {
    const ask = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
      const headers = { ...this.#headers, 'content-type': 'application/json' };
      const { text } = await this.#server.request(path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
      return JSON.parse(text);
    };
    const made = [];
    for (const input of ['One', 'Two']) made.push(await ask('POST', '/v1/responses', { model: 'assistant', input }));
    const turn = { model: 'assistant', session_id: 'room', messages: [{ role: 'user', content: 'Hi' }] };
    await ask('POST', '/v1/chat/completions', turn);
    const { data = [] } = (await ask('GET', '/v1/conversations')) as { data?: readonly { readonly id: string }[] };
    return {
      responses: made.map(({ id }) => String(id)),
      items: made.map(({ output }) => String((output as readonly { readonly id: string }[] | undefined)?.[0]?.id)),
      conversations: data.map(({ id }) => id).slice(0, 2),
    };
  }

  #request({ method, path, body }: Case): Promise<string> {
    return new Promise((resolve) => {
      const headers = { ...this.#headers, ...(body && { 'content-type': 'application/json', 'content-length': body.length }) };
      const sent = request(this.#server.url + path, { method, headers, agent: this.#agent }, (response) => {
        response.resume();
        response.once('close', () => resolve(response.complete ? String(response.statusCode) : 'cut off'));
      });
      sent.setTimeout(PATIENCE, () => sent.destroy(new Error('not answered')));
      sent.once('error', (error) => resolve(error.message));
      sent.end(body);
    });
  }

  /** Sends the message as text, whatever its bytes are. Now and then waits for a pong. */
  async #message({ body, path }: Case): Promise<string> {
    if (this.#socket?.readyState !== WebSocket.OPEN) {
      const socket = new WebSocket(this.#server.url.replace('http', 'ws') + path, { headers: this.#headers });
      socket.on('error', () => {});
      await Promise.race([once(socket, 'open'), once(socket, 'close')]).catch(() => {});
      this.#socket = socket;
      this.#unanswered = 0;
    }
    const socket = this.#socket;
    if (socket.readyState !== WebSocket.OPEN) return 'no connection';
    socket.send(body ?? '', { binary: false });
    if (++this.#unanswered < MAX_UNANSWERED) return 'message';
    this.#unanswered = 0;
    const answered = new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), PATIENCE);
      const done = () => {
        clearTimeout(timer);
        socket.off('message', onMessage);
        resolve(true);
      };
      const onMessage = (data: unknown) => String(data).includes('svc:pong') && done();
      socket.on('message', onMessage);
      socket.once('close', done);
    });
    socket.send('{"type":"svc:ping","id":"here?"}');
    return (await answered) ? 'message' : 'no pong';
  }
}
