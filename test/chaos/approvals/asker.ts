import type { ChatRequest, Script } from '@plugboard/testing';

/** A call that needs approval, as the client that decides about it knows it. */
export interface AskedCall {
  readonly name: string;
  readonly session: string;
  readonly effect: 'write' | 'read';
  /** What its client decides. */
  readonly approve: boolean;
  /** The decision that the server confirmed. Undefined if no answer arrived. */
  confirmed: boolean | undefined;
  /** Whether two clients decided differently at once: either may win. */
  isContested: boolean;
}

interface Waiting {
  readonly id: string;
  readonly session: string;
  /** JSON, with the call's name. */
  readonly arguments: string;
}

const WAYS = ['lines', 'items', 'post', 'lines and items', 'contested'] as const;

/** The connection broke off. */
class Cut extends Error {}

/**
 * A client of one session: it asks for something that needs approval, decides, and goes on, and
 * after a kill it looks at what waits. It writes down what it saw.
 */
export class Asker {
  readonly session: string;
  readonly agent: string;
  /** Answers that nothing explains. */
  readonly wrong: string[] = [];
  readonly #journal: Map<string, AskedCall>;
  readonly #random: () => number;
  /** The codes of the calls that wait, by name, if the answer with them arrived. */
  #codes = new Map<string, string>();
  #count = 0;
  /** Calls were decided, or a request was cut: their results may be missing in the session. */
  #mustGoOn = false;

  constructor(session: string, agent: string, journal: Map<string, AskedCall>, random: () => number) {
    this.session = session;
    this.agent = agent;
    this.#journal = journal;
    this.#random = random;
  }

  /**
   * Does the next thing. @returns whether the server answered.
   * @param asks whether to ask for something new if nothing is left to do.
   */
  async play(url: string, asks = true): Promise<'done' | 'cut' | 'settled'> {
    try {
      const waiting = await this.#waiting(url);
      if (waiting.length > 0) await this.#decide(url, waiting);
      else if (this.#mustGoOn) await this.#goOn(url);
      else if (asks) await this.#ask(url);
      else return 'settled';
      return 'done';
    } catch (error) {
      if (!(error instanceof Cut)) throw error;
      this.#mustGoOn = true;
      return 'cut';
    }
  }

  async #ask(url: string): Promise<void> {
    const task = `${this.session}-${++this.#count}`;
    const calls = Array.from({ length: 1 + this.#upTo(3) }, (_, index) => {
      const call: AskedCall = {
        name: `${task}.${index}`,
        session: this.session,
        effect: this.#random() < 0.6 ? 'write' : 'read',
        approve: this.#random() < 0.8,
        confirmed: undefined,
        isContested: false,
      };
      this.#journal.set(call.name, call);
      return call;
    });
    const plans = calls.map(({ name, effect }) => `${name}:${effect}:${this.#upTo(6)}`);
    const text = await this.#say(url, `ask ${plans.join(' ')}`);
    const codes = [...text.matchAll(/approve ([A-Z2-9]{6})/g)].map(([, code = '']) => code);
    if (codes.length !== calls.length) this.wrong.push(`${calls.length} calls and ${codes.length} codes: ${text}`);
    this.#codes = new Map(calls.map(({ name }, index) => [name, codes[index] ?? '']));
  }

  async #goOn(url: string): Promise<void> {
    const text = await this.#say(url, `go on ${++this.#count}`);
    if (text !== 'Done.') this.wrong.push(`an answer to "go on": ${text}`);
    this.#mustGoOn = false;
  }

  async #decide(url: string, waiting: readonly Waiting[]): Promise<void> {
    const calls = waiting.map((one) => ({ id: one.id, call: this.#known(JSON.parse(one.arguments).name) }));
    const codes = calls.map(({ call }) => this.#codes.get(call.name));
    const lines = () => this.#say(url, calls.map(({ call }, index) => `${verb(call.approve)} ${codes[index]}`).join('\n'));
    const items = async () => {
      const input = calls.map(({ id, call: { approve } }) => ({
        type: 'mcp_approval_response',
        approval_request_id: id,
        approve,
      }));
      const { status } = await this.#send(url, '/v1/responses', { model: this.agent, conversation: this.session, input });
      return status;
    };
    const way = WAYS[this.#upTo(WAYS.length)];
    if (way === 'contested') return this.#contest(url, calls[0]);
    if (way === 'post' || codes.some((code) => code === undefined)) {
      this.#mustGoOn = true;
      for (const { id, call } of calls) {
        if ((await this.#post(url, id, call.approve)) === 202) call.confirmed = call.approve;
        else this.wrong.push(`${call.name} waited, and could not be decided`);
      }
      return;
    }
    if (way === 'items') {
      const status = await items();
      if (status !== 200) this.wrong.push(`items: ${status}`);
    } else if (way === 'lines') {
      const text = await lines();
      if (text !== 'Done.') this.wrong.push(`an answer to lines: ${text}`);
    } else {
      const [status] = await both(items(), lines());
      // The one that comes second is too late for the item, and an ordinary message otherwise.
      if (status !== 200 && status !== 409) this.wrong.push(`items at once with lines: ${status}`);
    }
    for (const { call } of calls) call.confirmed = call.approve;
    this.#mustGoOn = false;
  }

  /** Approves and denies one call at once. */
  async #contest(url: string, contested: { readonly id: string; readonly call: AskedCall } | undefined): Promise<void> {
    if (!contested) return;
    const { id, call } = contested;
    call.isContested = true;
    this.#mustGoOn = true;
    const [approved, denied] = await both(this.#post(url, id, true), this.#post(url, id, false));
    if (approved + denied !== 202 + 409) this.wrong.push(`${call.name} approved with ${approved}, denied with ${denied}`);
    call.confirmed = approved === 202;
  }

  async #waiting(url: string): Promise<readonly Waiting[]> {
    const { body } = await this.#send(url, '/v1/approvals?limit=100&order=asc');
    return (body as { readonly data: readonly Waiting[] }).data.filter(({ session }) => session === this.session);
  }

  async #post(url: string, id: string, approve: boolean): Promise<number> {
    return (await this.#send(url, `/v1/approvals/${id}`, { approve })).status;
  }

  async #say(url: string, content: string): Promise<string> {
    const { status, body } = await this.#send(url, '/v1/chat/completions', {
      model: this.agent,
      session_id: this.session,
      messages: [{ role: 'user', content }],
    });
    if (status !== 200) return `${status} ${JSON.stringify(body)}`;
    return (body as { readonly choices: [{ readonly message: { readonly content: string } }] }).choices[0].message.content;
  }

  async #send(url: string, path: string, body?: object): Promise<{ readonly status: number; readonly body: unknown }> {
    const request = body && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    };
    try {
      const response = await fetch(url + path, request);
      return { status: response.status, body: await response.json() };
    } catch (error) {
      throw new Cut(path, { cause: error });
    }
  }

  #known(name: string): AskedCall {
    const call = this.#journal.get(name);
    if (!call) throw new Error(`${name} waits, and nobody asked for it`);
    return call;
  }

  #upTo(n: number): number {
    return Math.floor(this.#random() * n);
  }
}

/** Waits for both, also if one fails. */
async function both<T, U>(first: Promise<T>, second: Promise<U>): Promise<readonly [T, U]> {
  await Promise.allSettled([first, second]);
  return [await first, await second];
}

function verb(approve: boolean): string {
  return approve ? 'approve' : 'deny';
}

/** The model of these sessions: it makes the calls that a user asks for, and then is done. */
export function modelOf({ messages }: ChatRequest): Script {
  const last = messages.at(-1);
  const [word, ...plans] = last?.role === 'user' ? String(last.content).split(' ') : [];
  if (word !== 'ask') return { text: 'Done.' };
  return {
    toolCalls: plans.map((plan) => {
      const [name = '', effect, pause] = plan.split(':');
      return { name: `deadly__${effect}`, arguments: { name, pause: Number(pause) } };
    }),
  };
}
