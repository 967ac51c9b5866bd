import { CLIENT_TOOL, CONTENTS, ODD_IMAGES } from './every-provider.js';

/** A call of a client tool that waits for its result. */
interface OpenCall {
  readonly id: string;
}

type Outcome = { readonly failure?: string; readonly text?: string };

/** A client that plays a random program in one session and its forks. */
export class BrickPlayer {
  /** Its turns, for a report. */
  readonly log: string[] = [];
  readonly #random: () => number;
  #session: string;
  #forks = 0;
  #open: readonly OpenCall[] = [];
  #codes: readonly string[] = [];

  constructor(session: string, random: () => number) {
    this.#session = session;
    this.#random = random;
  }

  /** Plays one step: maybe a fork, then a turn. */
  async play(url: string): Promise<void> {
    if (this.#chance(0.1)) await this.#fork(url);
    const fields = this.#fields();
    if (this.#open.length > 0 && this.#chance(0.7)) await this.#say(url, this.#results(), fields);
    else if (this.#codes.length > 0 && this.#chance(0.8))
      await this.#say(url, [{ role: 'user', content: `${this.#pick(['approve', 'deny'])} ${this.#pick(this.#codes)}` }], fields);
    else await this.#say(url, [{ role: 'user', content: this.#content() }], fields);
  }

  /** Sends a plain message. @returns the failure, if there is one. */
  async greet(url: string): Promise<string | undefined> {
    return (await this.#ask(url, [{ role: 'user', content: 'Still there?' }], {})).failure;
  }

  #content(): unknown {
    const content = this.#chance(0.4) ? 'Use the tools' : this.#pick(CONTENTS);
    if (!this.#chance(0.15)) return content;
    return [...(typeof content === 'string' ? [{ type: 'text', text: content }] : (content as object[])), this.#pick(ODD_IMAGES)];
  }

  #results(): object[] {
    const contents = ['', 'ok', [{ type: 'text', text: 'a' }], 'half \ud83d'];
    return this.#open.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: this.#pick(contents) }));
  }

  #fields(): object {
    return {
      ...(this.#chance(0.5) ? { stream: true } : {}),
      ...(this.#chance(0.4) ? { tools: [CLIENT_TOOL] } : {}),
      ...(this.#chance(0.1) ? { tool_choice: 'none' } : {}),
      ...(this.#chance(0.1) ? { max_tokens: 50 } : {}),
    };
  }

  async #say(url: string, messages: object[], fields: object): Promise<void> {
    if (this.#chance(0.15)) messages.unshift({ role: 'system', content: 'Speak like a pirate.' });
    const isLeft = this.#chance(0.1);
    const signal = isLeft ? AbortSignal.timeout(1 + Math.floor(this.#random() * 10)) : undefined;
    const { failure, text = '' } = await this.#ask(url, messages, fields, signal).catch(() => ({ failure: 'left', text: '' }));
    this.log.push(
      `${this.#session} ${JSON.stringify(messages).slice(0, 90)} ${JSON.stringify(fields).slice(0, 80)} ${failure ?? ''}`,
    );
    if (failure !== undefined) return;
    this.#codes = [...text.matchAll(/approve ([A-Z0-9]{6})/g)].map(([, code = '']) => code);
    this.#open = [...text.matchAll(/"id":"([^"]+)"[^{}]*"function":\{"name":"ask_user/g)].map(([, id = '']) => ({ id }));
  }

  /** Goes on with a copy of the session. */
  async #fork(url: string): Promise<void> {
    const list = (await (await fetch(`${url}/v1/conversations?limit=100`)).json()) as { data: { id: string; key: string }[] };
    const own = list.data.find(({ key }) => key === this.#session);
    if (!own) return;
    const { data: items } = (await (await fetch(`${url}/v1/conversations/${own.id}/items?limit=50`)).json()) as {
      data: { id: string }[];
    };
    const id = `${this.#session.split('.')[0]}.${++this.#forks}`;
    const after = items.length > 0 && this.#chance(0.6) ? { after_item: this.#pick(items).id } : {};
    const response = await fetch(`${url}/v1/conversations/${own.id}/fork`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id, ...after }),
    });
    const reply = await response.text();
    this.log.push(`fork ${id} ${JSON.stringify(after)} ${response.status === 200 ? '' : reply}`);
    if (response.status !== 200) return;
    this.#session = id;
    this.#open = [];
    this.#codes = [];
  }

  async #ask(url: string, messages: object[], fields: object, signal?: AbortSignal): Promise<Outcome> {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'mixed', session_id: this.#session, messages, ...fields }),
      ...(signal ? { signal } : {}),
    });
    const text = await response.text();
    return response.status === 200 && !text.includes('"error"') ? { text } : { failure: `${response.status} ${text}` };
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }

  #pick<T>(list: readonly T[]): T {
    return list[Math.floor(this.#random() * list.length)] as T;
  }
}
