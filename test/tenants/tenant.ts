import { conversationId } from '@plugboard/kernel/contracts';
import type { TestServer } from '../support/test-server.js';

/** One thing that a tenant does, with numbers that pick from what is there at the time. */
export interface Step {
  readonly action: (typeof ACTIONS)[number];
  /**
   * Picks one of the conversations that the tenant knows, including the other tenant's, or one that
   * never was.
   */
  readonly target: number;
  readonly key: number;
  readonly stream: boolean;
  readonly idempotency: number;
}

export const ACTIONS = [
  'chat',
  'chat-user',
  'chat-session',
  'chat-header',
  'chat-conversation',
  'chat-foreign-agent',
  'chat-idempotent',
  'models',
  'model',
  'create',
  'list',
  'get',
  'update',
  'items',
  'item',
  'append',
  'fork',
  'cancel',
  'delete',
] as const;

/**
 * A conversation that never was: what is answered about it is what must be answered about another
 * tenant's.
 */
const UNKNOWN = conversationId({ project: 'nobody', agent: 'nobody', key: 'nobody' });

interface Asked {
  readonly method?: 'GET' | 'POST' | 'DELETE';
  readonly path: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: string;
}

/** A client of one project that runs commands and remembers the expected state. */
export class Tenant {
  readonly name: string;
  /** Stands in everything that it says. */
  readonly secret: string;
  /** Its conversations by opaque id: only it may add or remove any. */
  readonly own = new Set<string>();
  /** Everything that was wrong, as sentences. */
  readonly faults: string[] = [];
  steps = 0;
  readonly #server: TestServer;
  /** Told apart from those of other runs. */
  readonly #run: number;
  #other: Tenant | undefined;

  constructor(name: string, run: number, server: TestServer) {
    this.name = name;
    this.secret = `secret-of-${name}`;
    this.#run = run;
    this.#server = server;
  }

  meet(other: Tenant): void {
    this.#other = other;
  }

  async play(steps: readonly Step[]): Promise<void> {
    for (const step of steps) await this.#take(step);
  }

  /** The ids of its conversations, as the server lists them. */
  async listed(): Promise<string[]> {
    const ids: string[] = [];
    for (let after = ''; ; ) {
      const { text } = await this.#ask({ path: `/v1/conversations?limit=100${after}` });
      const { data, has_more, last_id } = JSON.parse(text);
      ids.push(...data.map(({ id }: { id: string }) => id));
      if (!has_more) return ids;
      after = `&after=${last_id}`;
    }
  }

  async #take(step: Step): Promise<void> {
    this.steps++;
    const id = this.#pick(step.target);
    const key = this.#key(step.key);
    const path = `/v1/conversations/${id}`;
    switch (step.action) {
      case 'chat':
        return this.#chat(step, {});
      case 'chat-user':
        return this.#chat(step, { user: key }, key);
      case 'chat-session':
        return this.#chat(step, { session_id: key }, key);
      case 'chat-header':
        return this.#chat(step, {}, key, { 'x-session-id': key });
      case 'chat-idempotent':
        return this.#chat(step, { session_id: key }, key, { 'idempotency-key': `${this.#run}-${step.idempotency}` });
      case 'chat-conversation':
        return this.#about(id, { path: '/v1/chat/completions', body: this.#saying(step, { session_id: id }) });
      case 'chat-foreign-agent':
        return this.#expect(403, {
          path: '/v1/chat/completions',
          body: { ...this.#saying(step, {}), model: `bot-of-${this.#other?.name}` },
        });
      case 'models':
        return this.#expect(200, { path: '/v1/models' });
      case 'model':
        return this.#expect(404, { path: `/v1/models/bot-of-${this.#other?.name}` });
      case 'create':
        return this.#create({
          path: '/v1/conversations',
          body: { agent: `bot-of-${this.name}`, id: key, metadata: { note: this.secret }, items: this.#items() },
        });
      case 'list':
        return this.#expect(200, { path: `/v1/conversations?limit=${(step.key % 3) + 1}&user=${encodeURIComponent(key)}` });
      case 'get':
        return this.#about(id, { path });
      case 'update':
        return this.#about(id, { path, body: { metadata: { note: this.secret } } });
      case 'items':
        return this.#about(id, { path: `${path}/items?limit=5&order=asc` });
      case 'item':
        return this.#about(id, { path: `${path}/items/msg_${id.slice('conv_'.length)}_1_0` }, [200, 404]);
      case 'append':
        return this.#about(id, { path: `${path}/items`, body: { items: this.#items() } });
      case 'fork':
        return this.#create({ path: `${path}/fork`, body: { id: `${key}-fork` } }, id);
      case 'cancel':
        return this.#about(id, { path: `${path}/cancel`, body: {} });
      case 'delete':
        await this.#about(id, { method: 'DELETE', path });
        this.own.delete(id);
    }
  }

  /** Both tenants use the same keys: they must never meet in a session. */
  #key(number: number): string {
    return `run ${this.#run} key ${number % 3}`;
  }

  #pick(target: number): string {
    const known = [...this.own, ...(this.#other?.own ?? []), UNKNOWN];
    return known[target % known.length] ?? UNKNOWN;
  }

  #saying(step: Step, fields: object): object {
    return { model: `bot-of-${this.name}`, messages: [{ role: 'user', content: this.secret }], stream: step.stream, ...fields };
  }

  #items(): object[] {
    return [
      { type: 'message', role: 'user', content: this.secret },
      { type: 'message', role: 'assistant', content: 'Noted.' },
    ];
  }

  async #chat(step: Step, fields: object, key?: string, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    const { status, headers: answered } = await this.#ask({
      path: '/v1/chat/completions',
      body: this.#saying(step, fields),
      headers,
    });
    if (status === 422 && headers['idempotency-key']) return; // the same key for another session
    if (status !== 200) this.#fault(`${step.action} was answered ${status}`);
    // A replayed answer creates no session if it was deleted meanwhile.
    if (key !== undefined && !answered.includes('idempotent-replayed')) this.#have(key);
  }

  /** @param source what is copied, where something is. */
  async #create(asked: Asked, source?: string): Promise<void> {
    const key = String((asked.body as { id: string }).id);
    const isTaken = this.own.has(this.#conversation(key));
    const mine = source === undefined || this.own.has(source);
    const { status } = await this.#ask(asked);
    const wanted = mine ? (isTaken ? 409 : 200) : 404;
    if (status !== wanted) this.#fault(`${asked.path} was answered ${status}, and ${wanted} is right`);
    if (status === 200) this.#have(key);
  }

  /**
   * Reads a conversation: its own is returned; another tenant's is answered like one that never
   * existed.
   */
  async #about(id: string, asked: Asked, right: readonly number[] = [200]): Promise<void> {
    const mine = this.own.has(id);
    const answer = await this.#ask(asked);
    if (mine && !right.includes(answer.status))
      this.#fault(`${asked.path} of its own was answered ${answer.status}: ${answer.text}`);
    if (mine || id === UNKNOWN) return;
    const replaced = JSON.parse(JSON.stringify(asked).replaceAll(id, UNKNOWN).replaceAll(id.slice(5), UNKNOWN.slice(5)));
    const unknown = await this.#ask(replaced);
    if (answer.status !== 404 || answer.text !== unknown.text)
      this.#fault(`${asked.path} of another was answered ${answer.status}: ${answer.text}, not like one that never existed`);
  }

  async #expect(status: number, asked: Asked): Promise<void> {
    const answer = await this.#ask(asked);
    if (answer.status !== status) this.#fault(`${asked.path} was answered ${answer.status}: ${answer.text}`);
  }

  /** No answer may contain anything of the other tenant. */
  async #ask({ path, body, headers = {}, method = body ? 'POST' : 'GET' }: Asked): Promise<Answer> {
    const response = await fetch(this.#server.url + path, {
      method,
      headers: {
        authorization: `Bearer token-of-${this.name}-0123456789`,
        ...(body && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const answer = {
      status: response.status,
      text: await response.text(),
      headers: JSON.stringify([...response.headers]),
    };
    const other = this.#other;
    if (other) {
      const said = answer.text + answer.headers;
      if (said.includes(other.secret) || said.includes(`prompt-of-${other.name}`))
        this.#fault(`${path} shows what is ${other.name}'s: ${said}`);
      if (response.status >= 500) this.#fault(`${path} was answered ${response.status}: ${answer.text}`);
    }
    return answer;
  }

  #have(key: string): void {
    this.own.add(this.#conversation(key));
  }

  #conversation(key: string): string {
    return conversationId({ project: this.name, agent: `bot-of-${this.name}`, key });
  }

  #fault(what: string): void {
    this.faults.push(`${this.name}: ${what}`);
  }
}
