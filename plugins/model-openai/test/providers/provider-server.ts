import { type ChatRequest, ModelServer, type ReceivedRequest, type Script } from '@plugboard/testing';

/** A message of a request, as far as a provider looks into it. */
export type Sent = ChatRequest['messages'][number] & { readonly tool_calls?: readonly SentCall[] };

interface SentCall {
  readonly id: string;
  readonly type: string;
  readonly function: { readonly name: string; readonly arguments: string };
  readonly [field: string]: unknown;
}

/** What a provider's model says, in no provider's form. */
export interface Answer {
  readonly reasoning: string;
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly args: object }[];
}

/** How a provider differs from the protocol, in what it sends and in what it refuses. */
export interface Provider {
  /** The options of the connection, as YAML in flow style. */
  readonly options: string;
  /** False if the provider's models take text only. */
  readonly seesImages?: boolean;
  /** Whether it knows the names of participants, and refusals. */
  readonly knowsRefusals?: boolean;
  /** Whether it refuses a text without a visible character. */
  readonly refusesBlank?: boolean;
  /** Whether a conversation must begin with the user. */
  readonly startsWithUser?: boolean;
  /**
   * The id of a tool call.
   *
   * @param index of the call in its answer.
   * @param turn counts answers with calls.
   */
  callId?(name: string, index: number, turn: number): string;
  /** Why the provider refuses a request. It sees all that it has sent before. */
  refuse?(request: ReceivedRequest, sent: readonly Answer[]): string | undefined;
  /** What is missing of the data that the provider attached to its own answers. */
  missing?(request: ReceivedRequest, sent: readonly Answer[]): string | undefined;
  /** The chunks of a streamed answer, or the text of the whole body. */
  stream(answer: Answer, request: ChatRequest): readonly object[] | string;
  /** The body of an answer that is not streamed. */
  whole(answer: Answer, request: ChatRequest): object | string;
  readonly contentType?: string;
  /** An error that passes: the same request succeeds afterwards. */
  readonly passing: Script;
  /** An error that stays, and what callers read of it. */
  readonly lasting: { readonly script: Script; readonly message: RegExp };
  /** `prompt, completion, cached, reasoning` of one model call. */
  readonly usage: readonly [number, number, number, number];
}

/**
 * A scripted server of a provider: it keeps up a conversation, and refuses what the real one
 * refuses.
 */
export class ProviderServer {
  /** Why it refused requests. */
  readonly refusals: string[] = [];
  #missing: string[] = [];
  readonly #provider: Provider;
  readonly #sent: Answer[] = [];
  #failsNext = false;
  #failure: { status: number; after: number } | undefined;
  #turn = 0;

  private constructor(
    provider: Provider,
    readonly models: ModelServer,
  ) {
    this.#provider = provider;
    models.respond((request) => this.#respond(request));
  }

  static async start(provider: Provider): Promise<ProviderServer> {
    return new ProviderServer(provider, await ModelServer.start());
  }

  /** Meets the next request with the error that passes. */
  failNext(): void {
    this.#failsNext = true;
  }

  /** Answers a request with an error status. @param after requests that it answers before. */
  failAfter(after: number, status: number): void {
    this.#failure = { status, after };
  }

  /** Answers all requests again. */
  recover(): void {
    this.#failure = undefined;
  }

  /** What was missing since the last call. */
  takeMissing(): readonly string[] {
    const missing = this.#missing;
    this.#missing = [];
    return missing;
  }

  #respond(request: ReceivedRequest): Script {
    const { body } = request;
    const refusal = faultOfProtocol(body) ?? faultOfHistory(body, this.#provider) ?? this.#provider.refuse?.(request, this.#sent);
    if (refusal !== undefined) {
      this.refusals.push(refusal);
      return { status: 400, body: { error: { message: refusal, type: 'invalid_request_error' } } };
    }
    this.#missing.push(...[this.#provider.missing?.(request, this.#sent)].filter((one) => one !== undefined));
    const last = lastText(body);
    if (this.#failure && this.#failure.after-- === 0) return { status: this.#failure.status };
    if (this.#failsNext) {
      this.#failsNext = false;
      return this.#provider.passing;
    }
    if (last.endsWith('disaster')) return this.#provider.lasting.script;
    const answer = this.#answerTo(body, last);
    this.#sent.push(answer);
    const provider = this.#provider;
    const type = provider.contentType;
    if (body.stream === true) {
      const said = provider.stream(answer, body);
      const raw =
        typeof said === 'string' ? said : `${said.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')}data: [DONE]\n\n`;
      return { raw: [raw], ...(type === undefined ? {} : { contentType: type }) };
    }
    const whole = provider.whole(answer, body);
    return { raw: [typeof whole === 'string' ? whole : JSON.stringify(whole)], contentType: type ?? 'application/json' };
  }

  #answerTo({ messages, tools = [] }: ChatRequest, last: string): Answer {
    const after = messages.slice(messages.findLastIndex((message) => message.role === 'user' && !isToolImages(message)) + 1);
    const results = after.filter(({ role }) => role === 'tool').map(({ content }) => plainText(content));
    if (results.length > 0) return { reasoning: 'Two results.', text: `Found: ${results.join(' and ')}.`, calls: [] };
    if (!last.includes('tools')) {
      const sees = messages.some(({ content }) => Array.isArray(content) && content.some(({ type }) => type === 'image_url'));
      return {
        reasoning: 'A question.',
        text: sees && last.includes('image') ? 'A red dot.' : `Answer ${messages.length}.`,
        calls: [],
      };
    }
    this.#turn += 1;
    const names = (tools as readonly { function: { name: string } }[]).map((tool) => tool.function.name);
    const declared = (name: string) => names.find((one) => one.endsWith(name)) ?? name;
    const id = (name: string, index: number) => this.#provider.callId?.(name, index, this.#turn) ?? `call_${this.#turn}_${index}`;
    const calls = [
      { id: id('lookup', 0), name: declared('lookup'), args: { word: 'oak', depth: 1 } },
      { id: id('sum', 1), name: declared('sum'), args: { terms: [1, 2] } },
    ];
    return { reasoning: 'Two tools.', text: '', calls };
  }
}

/** What every provider refuses. */
function faultOfProtocol({ model, messages, tools = [], stream, stream_options: options }: ChatRequest): string | undefined {
  if (typeof model !== 'string' || !Array.isArray(messages)) return 'model and messages are required';
  if (options !== undefined && stream !== true) return 'stream_options is only allowed with stream';
  const open = new Set<string>();
  for (const [i, message] of (messages as readonly Sent[]).entries()) {
    if (message.role === 'tool') {
      if (!open.delete(String(message.tool_call_id))) return `messages[${i}] answers no call`;
    } else if (open.size > 0) return `messages[${i}]: results of ${[...open]} are missing`;
    for (const { id } of message.tool_calls ?? []) open.add(id);
    if ('extra' in message || (message.tool_calls ?? []).some((call) => 'extra' in call)) return `messages[${i}] has an extra`;
  }
  for (const tool of tools as readonly { function: { parameters: Record<string, unknown> } }[])
    if (tool.function.parameters.properties === undefined) return 'object schema missing properties';
  return open.size > 0 ? 'results are missing' : undefined;
}

/** What real servers refuse in old messages. */
function faultOfHistory({ messages }: ChatRequest, provider: Provider): string | undefined {
  const json = JSON.stringify(messages);
  if (!isWellFormed(messages)) return 'The request body is not valid JSON: no low surrogate in string';
  if (json.includes('YnJva2Vu')) return 'Could not process image';
  if (json.includes('https://gone.example')) return 'Error while downloading https://gone.example.';
  if (provider.startsWithUser && messages.find(({ role }) => role !== 'system')?.role !== 'user')
    return 'the first message must use the "user" role';
  for (const [i, message] of (messages as readonly Sent[]).entries()) {
    const { role, content, name, tool_calls: calls = [] } = message as Sent & { readonly name?: unknown };
    const at = `messages[${i}]`;
    if (role === 'function' || 'function_call' in message || 'audio' in message) return `${at} is deprecated`;
    if (name !== undefined && !/^[^\s<|\\/>]{1,64}$/.test(String(name)))
      return `Invalid '${at}.name': string does not match pattern.`;
    for (const { function: called, type } of calls) {
      if (type !== 'function') return `${at}.tool_calls: the type ${type} is unknown`;
      if (!/^[a-zA-Z0-9_-]{1,64}$/.test(called.name)) return `${at}.tool_calls: the name is invalid`;
    }
    const parts = Array.isArray(content) ? content : [];
    const isRefusal = 'refusal' in message || parts.some(({ type }) => type === 'refusal');
    if (isRefusal && !provider.knowsRefusals) return `${at}: property 'refusal' is unsupported`;
    const isText = parts.every(({ type }) => type === 'text');
    if (provider.refusesBlank && role !== 'tool' && calls.length === 0 && isText && plainText(content).trim() === '')
      return `${at}: text content blocks must contain non-whitespace text`;
  }
  return undefined;
}

/** Also inside of arguments, which many servers read. */
function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return value.isWellFormed() && (!value.startsWith('{') || isWellFormed(parsed(value)));
  if (typeof value !== 'object' || value === null) return true;
  return Object.entries(value).every(([key, inner]) => key.isWellFormed() && isWellFormed(inner));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function lastText({ messages }: ChatRequest): string {
  return plainText(messages.findLast((message) => message.role === 'user' && !isToolImages(message))?.content);
}

function isToolImages({ content }: Sent): boolean {
  return plainText(content).startsWith('Images from the tool results');
}

function plainText(content: unknown): string {
  if (typeof content === 'string') return content;
  return Array.isArray(content) ? content.map((part) => part.text ?? '').join('') : '';
}

/** The messages of the assistant in a request. */
export function assistantMessages({ messages }: ChatRequest): readonly Sent[] {
  return (messages as readonly Sent[]).filter(({ role }) => role === 'assistant');
}

/** Fields that a strict server does not know, anywhere in the body, by name. */
export function unknownField(
  body: ChatRequest,
  known: { readonly body: readonly string[]; readonly message: readonly string[]; readonly function: readonly string[] },
): string | undefined {
  const stray = (value: object, names: readonly string[]) => Object.keys(value).find((name) => !names.includes(name));
  const inBody = stray(body, known.body);
  if (inBody !== undefined) return `Extra inputs are not permitted: ${inBody}`;
  for (const message of body.messages) {
    const found = stray(message, known.message);
    if (found !== undefined) return `Extra inputs are not permitted: messages.${found}`;
  }
  for (const tool of (body.tools ?? []) as readonly { function: object }[]) {
    const found = stray(tool.function, known.function);
    if (found !== undefined) return `Extra inputs are not permitted: tools.${found}`;
  }
  return undefined;
}

/** The first keyword of the tools' schemas that is not among these. */
export function unknownKeyword(body: ChatRequest, known: readonly string[]): string | undefined {
  const inSchema = (schema: unknown): string | undefined => {
    if (typeof schema !== 'object' || schema === null) return undefined;
    for (const [key, value] of Object.entries(schema)) {
      if (!known.includes(key)) return key;
      const inner = key === 'properties' ? Object.values(value) : key === 'anyOf' ? value : key === 'items' ? [value] : [];
      for (const one of inner) {
        const found = inSchema(one);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
  for (const tool of (body.tools ?? []) as readonly { function: { parameters: object } }[]) {
    const found = inSchema(tool.function.parameters);
    if (found !== undefined) return found;
  }
  return undefined;
}
