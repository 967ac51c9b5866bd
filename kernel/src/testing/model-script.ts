import type { Usage } from '../contracts/usage.js';

/**
 * What a scripted model server does with one request:
 *
 * - an `Answer`: what a model says, from which both the JSON body and the event stream are made;
 * - a `StatusScript`: an error status with its body;
 * - a `RawScript`: bytes as they stand, for everything that no well-behaved server sends;
 * - a `HangUp`: the connection is closed without an answer.
 */
export type Script = Answer | StatusScript | RawScript | HangUp;

/**
 * Things that happen one after the other: a string is sent, a promise is waited for. A test holds the promise's resolver and so says
 * when the server goes on; one that never resolves is a server that stalls. The generator of a streamed answer may go on without an end: it is
 * asked for more only when the caller's socket has room.
 *
 * ```ts
 * const gate = Promise.withResolvers<void>();
 * server.enqueue({ text: ['Hello', gate.promise, ' world'] });
 * ```
 */
export type Pieces<T> = Iterable<T | PromiseLike<unknown>>;

/** What a model says. Without anything it is an empty answer that ends well. */
export interface Answer {
  /** Waited for before the head of the response is sent. */
  readonly before?: PromiseLike<unknown>;
  /** Sent as `reasoning_content`. A string is one chunk. */
  readonly reasoning?: string | Pieces<string>;
  /** A string is one chunk; otherwise each string is a chunk of its own. */
  readonly text?: string | Pieces<string>;
  readonly refusal?: string | Pieces<string>;
  readonly toolCalls?: readonly ScriptedCall[];
  /** `tool_calls` where there are some, else `stop`. Null: the stream ends without saying why, and the JSON body says null. */
  readonly finishReason?: string | null;
  /** Counted in words where it is left out. Null: the server does not tell. */
  readonly usage?: Partial<Usage> | null;
  /** Whether a stream ends with `[DONE]`. It does. */
  readonly done?: boolean;
  /** The socket is closed in the middle: after so many events, the first of which has the role, or bytes of the body. */
  readonly cut?: { readonly afterEvents: number } | { readonly afterBytes: number };
  /** More headers for the response. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ScriptedCall {
  /** `call_1` and so on where it is left out. */
  readonly id?: string;
  readonly name: string;
  /** A list is sent in such fragments; an object as its JSON in one. */
  readonly arguments: string | readonly string[] | Readonly<Record<string, unknown>>;
}

/** An error status. */
export interface StatusScript {
  readonly status: number;
  /** An object is sent as JSON, a string as it stands. Left out: the protocol's error object with a message that names the status. */
  readonly body?: string | object;
  /** Seconds or a date, as `Retry-After` has it. */
  readonly retryAfter?: number | string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Bytes as they stand. Each piece goes out in a write of its own. */
export interface RawScript {
  readonly raw: Pieces<string | Uint8Array>;
  /** 200 where it is left out. */
  readonly status?: number;
  /** `text/event-stream` where it is left out; null: none is sent. */
  readonly contentType?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the response ends as it should, or the socket is closed behind the last piece. */
  readonly ending?: 'clean' | 'cut';
}

export interface HangUp {
  readonly hangUp: true;
  /** Waited for before. */
  readonly before?: PromiseLike<unknown>;
}

/** A chat-completions request, as far as a script would look at it. Nothing of it was checked. */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content?: unknown; readonly [field: string]: unknown }[];
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
  readonly [field: string]: unknown;
}

/** The events of a streamed answer, `[DONE]` apart, and what is waited for between them. */
export function* eventsOf(answer: Answer, request: ChatRequest): Generator<object | PromiseLike<unknown>, void> {
  const withUsage = request.stream_options?.include_usage === true;
  const said = { words: 0 };
  const chunk = (choices: object[], usage: object | null = null) => ({
    id: 'chatcmpl-scripted',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: request.model,
    choices,
    ...(withUsage ? { usage } : {}),
  });
  const delta = (delta: object, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta, logprobs: null, finish_reason }]);

  yield delta({ role: 'assistant', content: '' });
  for (const field of FIELDS) {
    for (const piece of pieces(answer[field])) {
      if (typeof piece === 'string') {
        said.words += wordsIn(piece);
        yield delta({ [NAMES[field]]: piece });
      } else yield piece;
    }
  }
  for (const [index, call] of (answer.toolCalls ?? []).entries()) {
    const id = call.id ?? `call_${index + 1}`;
    yield delta({ tool_calls: [{ index, id, type: 'function', function: { name: call.name, arguments: '' } }] });
    for (const fragment of fragmentsOf(call)) yield delta({ tool_calls: [{ index, function: { arguments: fragment } }] });
  }
  const finishReason = finishReasonOf(answer);
  if (finishReason !== null) yield delta({}, finishReason);
  if (withUsage && answer.usage !== null) yield chunk([], usageOf(answer, request, said.words));
}

/** The body of an answer that is asked for whole. Promises among its pieces are waited for. */
export async function completionOf(answer: Answer, request: ChatRequest): Promise<object> {
  const said: Record<(typeof FIELDS)[number], string | null> = { reasoning: null, text: null, refusal: null };
  for (const field of FIELDS) {
    for (const piece of pieces(answer[field])) {
      if (typeof piece === 'string') said[field] = (said[field] ?? '') + piece;
      else await piece;
    }
  }
  const calls = (answer.toolCalls ?? []).map((call, index) => ({
    id: call.id ?? `call_${index + 1}`,
    type: 'function',
    function: { name: call.name, arguments: fragmentsOf(call).join('') },
  }));
  const message = {
    role: 'assistant',
    content: said.text ?? (calls.length > 0 || said.refusal !== null ? null : ''),
    refusal: said.refusal,
    ...(said.reasoning === null ? {} : { reasoning_content: said.reasoning }),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
  const words = wordsIn(`${said.reasoning ?? ''} ${said.text ?? ''} ${said.refusal ?? ''}`);
  return {
    id: 'chatcmpl-scripted',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: request.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReasonOf(answer) }],
    ...(answer.usage === null ? {} : { usage: usageOf(answer, request, words) }),
  };
}

/** Answers with the last user message, word by word: what a server does that was given no script. */
export function echo(request: ChatRequest): Answer {
  const last = request.messages.findLast((message) => message.role === 'user');
  return { text: textOf(last?.content).split(/(?<=\s)(?=\S)/) };
}

/** The text of a message's content: the string, or its text parts joined. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

export function isPromise<T>(piece: T | PromiseLike<unknown>): piece is PromiseLike<unknown> {
  return typeof piece === 'object' && piece !== null && 'then' in piece;
}

const FIELDS = ['reasoning', 'text', 'refusal'] as const;
const NAMES = { reasoning: 'reasoning_content', text: 'content', refusal: 'refusal' } as const;

function pieces(said: string | Pieces<string> | undefined): Pieces<string> {
  return typeof said === 'string' ? [said] : (said ?? []);
}

function fragmentsOf(call: ScriptedCall): readonly string[] {
  if (typeof call.arguments === 'string') return [call.arguments];
  return isList(call.arguments) ? call.arguments : [JSON.stringify(call.arguments)];
}

function isList(value: ScriptedCall['arguments']): value is readonly string[] {
  return Array.isArray(value);
}

function finishReasonOf(answer: Answer): string | null {
  if (answer.finishReason !== undefined) return answer.finishReason;
  return answer.toolCalls?.length ? 'tool_calls' : 'stop';
}

function usageOf(answer: Answer, request: ChatRequest, words: number): object {
  const prompt = answer.usage?.promptTokens ?? wordsIn(request.messages.map(({ content }) => textOf(content)).join(' '));
  const completion = answer.usage?.completionTokens ?? words;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: answer.usage?.cachedTokens ?? 0 },
    completion_tokens_details: { reasoning_tokens: answer.usage?.reasoningTokens ?? 0 },
  };
}

function wordsIn(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}
