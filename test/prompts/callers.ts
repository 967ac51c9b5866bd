import type { Test } from 'tap';
import { LiveSocket } from '../support/live-socket.js';
import type { TestServer } from '../support/test-server.js';

type Item = Readonly<Record<string, unknown>>;

/** A tool of the caller. */
export const LOOKUP = {
  name: 'lookup',
  description: 'Looks a word up.\n  Keeps "quotes", <tags> and \u00fcmlauts.',
  schema: { type: 'object', properties: { word: { type: 'string', description: 'One word.' } }, required: ['word'] },
};

/** What a protocol calls the same things. */
interface Protocol {
  user(text: string): Item;
  result(id: string, text: string): Item;
  /** What a caller keeps of an answer. */
  kept(answer: Item): readonly Item[];
  /** The id of the first call in what was kept. */
  callId(kept: readonly Item[]): unknown;
  readonly tool: Item;
}

const chat: Protocol = {
  user: (content) => ({ role: 'user', content }),
  result: (id, content) => ({ role: 'tool', tool_call_id: id, content }),
  kept: ({ choices }) => [(choices as { message: Item }[])[0]?.message ?? {}],
  callId: ([message]) => (message?.tool_calls as Item[] | undefined)?.[0]?.id,
  tool: {
    type: 'function',
    function: { name: LOOKUP.name, description: LOOKUP.description, parameters: LOOKUP.schema },
  },
};

const responses: Protocol = {
  user: (content) => ({ role: 'user', content }),
  result: (id, output) => ({ type: 'function_call_output', call_id: id, output }),
  kept: ({ output }) => output as readonly Item[],
  callId: (items) => items.find(({ type }) => type === 'function_call')?.call_id,
  tool: { type: 'function', name: LOOKUP.name, description: LOOKUP.description, parameters: LOOKUP.schema },
};

const messages: Protocol = {
  user: (content) => ({ role: 'user', content }),
  result: (id, content) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content }] }),
  kept: ({ role, content }) => [{ role, content }],
  callId: ([message]) => (message?.content as Item[] | undefined)?.find(({ type }) => type === 'tool_use')?.id,
  tool: { name: LOOKUP.name, description: LOOKUP.description, input_schema: LOOKUP.schema },
};

/** Sends what is new, or all that was said. @returns the answer. */
type Send = (app: TestServer, fresh: readonly Item[], all: readonly Item[], tools: object) => Promise<Item>;

/** A way of speaking with an agent. */
export interface Surface {
  readonly protocol: Protocol;
  /** Whether the conversation outlives the server. */
  readonly stored: boolean;
  /** What comes back of the model's call is what the caller repeats. */
  readonly repeats?: 'everything' | 'without the text of arguments';
  open(t: Test): Send;
}

const post = async (app: TestServer, path: string, body: object, headers = {}): Promise<Item> => {
  const reply = await app.request('POST', path, headers, { model: 'assistant', ...body });
  if (reply.status !== 200) throw new Error(`${path}: ${reply.status} ${reply.text}`);
  return reply.body as Item;
};

const chatWith = (fields: object, which: (fresh: readonly Item[], all: readonly Item[]) => readonly Item[]): Surface['open'] => {
  return () => (app, fresh, all, tools) =>
    post(app, '/v1/chat/completions', { ...fields, ...tools, messages: which(fresh, all) });
};

const messagesWith = (headers: object, which: (fresh: readonly Item[], all: readonly Item[]) => readonly Item[]) => {
  return (): Send => (app, fresh, all, tools) =>
    post(app, '/v1/messages', { max_tokens: 500, ...tools, messages: which(fresh, all) }, headers);
};

const onlyFresh = (fresh: readonly Item[]) => fresh;
const everything = (_: readonly Item[], all: readonly Item[]) => all;

/** Continues the response before. */
function continuing(): Send {
  let previous: unknown = null;
  return async (app, fresh, _, tools) => {
    const answer = await post(app, '/v1/responses', { ...tools, input: fresh, previous_response_id: previous });
    previous = answer.id;
    return answer;
  };
}

function inConversation(): Send {
  let conversation: unknown;
  return async (app, fresh, _, tools) => {
    conversation ??= (await post(app, '/v1/conversations', { agent: 'assistant' })).id;
    return post(app, '/v1/responses', { ...tools, input: fresh, conversation });
  };
}

/** @param store whether the responses outlive the socket. */
function onSocket(store: boolean): Surface['open'] {
  return (t) => {
    let open: { readonly app: TestServer; readonly socket: Promise<LiveSocket> } | undefined;
    let previous: string | null = null;
    return async (app, fresh, _, tools) => {
      if (open?.app !== app) open = { app, socket: LiveSocket.open(t, app) };
      const socket = await open.socket;
      const answer = await socket.ask({ model: 'assistant', store, ...tools, input: fresh, previous_response_id: previous });
      previous = answer.id;
      return answer;
    };
  };
}

export const SURFACES: Readonly<Record<string, Surface>> = {
  'chat completions': { protocol: chat, stored: false, repeats: 'everything', open: chatWith({}, everything) },
  'chat completions, session': { protocol: chat, stored: true, open: chatWith({ session_id: 's' }, onlyFresh) },
  'chat completions, session sent whole': { protocol: chat, stored: true, open: chatWith({ session_id: 's' }, everything) },
  Responses: {
    protocol: responses,
    stored: false,
    repeats: 'everything',
    open: () => (app, _, all, tools) => post(app, '/v1/responses', { store: false, ...tools, input: all }),
  },
  'Responses, previous_response_id': { protocol: responses, stored: true, open: continuing },
  'Responses, conversation': { protocol: responses, stored: true, open: inConversation },
  'Responses on a socket': { protocol: responses, stored: false, open: onSocket(false) },
  'Responses on a socket, stored': { protocol: responses, stored: true, open: onSocket(true) },
  Messages: {
    protocol: messages,
    stored: false,
    repeats: 'without the text of arguments',
    open: messagesWith({}, everything),
  },
  'Messages, session': { protocol: messages, stored: true, open: messagesWith({ 'x-session-id': 's' }, onlyFresh) },
};

/** One caller of a surface, who keeps the conversation as clients of the protocol do. */
export class Caller {
  app: TestServer;
  readonly #protocol: Protocol;
  readonly #send: Send;
  readonly #tools: object;
  readonly #all: Item[] = [];
  #call: unknown;

  /** @param withTool whether the caller declares its tool. */
  constructor(t: Test, { protocol, open }: Surface, app: TestServer, withTool: boolean) {
    this.app = app;
    this.#protocol = protocol;
    this.#send = open(t);
    this.#tools = withTool ? { tools: [protocol.tool] } : {};
  }

  say(text: string): Promise<void> {
    return this.#add(this.#protocol.user(text));
  }

  /** Answers the call that came last. @returns its id, as the caller knows it. */
  async answerCall(text: string): Promise<string> {
    const id = String(this.#call);
    await this.#add(this.#protocol.result(id, text));
    return id;
  }

  async #add(item: Item): Promise<void> {
    this.#all.push(item);
    const answer = await this.#send(this.app, [item], [...this.#all], this.#tools);
    const kept = this.#protocol.kept(answer);
    this.#call = this.#protocol.callId(kept);
    this.#all.push(...kept);
  }
}
