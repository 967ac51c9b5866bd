import type { Usage } from '@plugboard/kernel/contracts';

/**
 * How a scripted model server handles one request:
 *
 * - an `Answer`: the model's answer, sent as a JSON body or as an event stream;
 * - a `StatusScript`: an error status with a body;
 * - a `RawScript`: arbitrary bytes, for malformed answers;
 * - a `HangUp`: the connection is closed without an answer.
 *
 * @experimental
 */
export type Script = Answer | StatusScript | RawScript | HangUp;

/**
 * A sequence of steps: strings are sent, promises are awaited. A test resolves a promise to let the
 * server continue; a promise that never resolves makes the server stall. A generator may be
 * endless: the next piece is pulled only when the client's socket has room.
 *
 * ```ts
 * const gate = Promise.withResolvers<void>();
 * server.enqueue({ text: ['Hello', gate.promise, ' world'] });
 * ```
 *
 * @experimental
 */
export type Pieces<T> = Iterable<T | PromiseLike<unknown>>;

/** The model's answer. By default it is empty and has the finish reason `stop`. @experimental */
export interface Answer {
  /** Awaited before the response head is sent. */
  readonly before?: PromiseLike<unknown>;
  /** Sent as `reasoning_content`. A string is one chunk. */
  readonly reasoning?: string | Pieces<string>;
  /** A string is one chunk; otherwise each string is a chunk of its own. */
  readonly text?: string | Pieces<string>;
  readonly refusal?: string | Pieces<string>;
  readonly toolCalls?: readonly ScriptedCall[];
  /** By default `tool_calls` or `stop`. Null: none in a stream, null in JSON. */
  readonly finishReason?: string | null;
  /** By default the number of words. Null: not sent. */
  readonly usage?: Partial<Usage> | null;
  /** Whether a stream ends with `[DONE]`. By default true. */
  readonly done?: boolean;
  /** Closes the socket after so many events (the first has the role) or bytes of the body. */
  readonly cut?: { readonly afterEvents: number } | { readonly afterBytes: number };
  /** Additional response headers. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A tool call in a scripted answer. @experimental */
export interface ScriptedCall {
  /** By default `call_1`, `call_2` and so on. */
  readonly id?: string;
  readonly name: string;
  /** A list is sent as fragments, its promises awaited; an object as its JSON in one fragment. */
  readonly arguments: string | readonly (string | PromiseLike<unknown>)[] | Readonly<Record<string, unknown>>;
}

/** An error status. @experimental */
export interface StatusScript {
  readonly status: number;
  /** An object is sent as JSON. By default the protocol's error object, naming the status. */
  readonly body?: string | object;
  /** The `Retry-After` header: seconds or a date. */
  readonly retryAfter?: number | string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Arbitrary bytes. Each piece is a separate write. @experimental */
export interface RawScript {
  readonly raw: Pieces<string | Uint8Array>;
  /** By default 200. */
  readonly status?: number;
  /** By default `text/event-stream`. Null: no header. */
  readonly contentType?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** `clean` (default) ends the response; `cut` closes the socket after the last piece. */
  readonly ending?: 'clean' | 'cut';
}

/** The model server closes the connection without an answer. @experimental */
export interface HangUp {
  readonly hangUp: true;
  /** Awaited first. */
  readonly before?: PromiseLike<unknown>;
}

/** The parts of a chat-completions request that scripts use. Not validated. @experimental */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly { readonly role: string; readonly content?: unknown; readonly [field: string]: unknown }[];
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
  readonly [field: string]: unknown;
}

/** The events of a streamed answer without `[DONE]`, and the promises to await between them. */
export function* eventsOf(answer: Answer, request: ChatRequest): Generator<object | PromiseLike<unknown>, void> {
  const withUsage = request.stream_options?.include_usage === true;
  let words = 0;
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
        words += wordsIn(piece);
        yield delta({ [NAMES[field]]: piece });
      } else yield piece;
    }
  }
  for (const [index, call] of (answer.toolCalls ?? []).entries()) {
    const id = call.id ?? `call_${index + 1}`;
    yield delta({ tool_calls: [{ index, id, type: 'function', function: { name: call.name, arguments: '' } }] });
    for (const fragment of fragmentsOf(call)) {
      yield isPromise(fragment) ? fragment : delta({ tool_calls: [{ index, function: { arguments: fragment } }] });
    }
  }
  const finishReason = finishReasonOf(answer);
  if (finishReason !== null) yield delta({}, finishReason);
  if (withUsage && answer.usage !== null) yield chunk([], usageOf(answer, request, words));
}

/** The JSON body of an answer, after the promises among its pieces. @experimental */
export async function completionOf(answer: Answer, request: ChatRequest): Promise<object> {
  const texts: Record<(typeof FIELDS)[number], string | null> = { reasoning: null, text: null, refusal: null };
  for (const field of FIELDS) {
    for (const piece of pieces(answer[field])) {
      if (typeof piece === 'string') texts[field] = (texts[field] ?? '') + piece;
      else await piece;
    }
  }
  const calls = await Promise.all(
    (answer.toolCalls ?? []).map(async (call, index) => {
      const fragments = fragmentsOf(call);
      await Promise.all(fragments);
      const text = fragments.filter((fragment) => !isPromise(fragment)).join('');
      return { id: call.id ?? `call_${index + 1}`, type: 'function', function: { name: call.name, arguments: text } };
    }),
  );
  const message = {
    role: 'assistant',
    content: texts.text ?? (calls.length > 0 || texts.refusal !== null ? null : ''),
    refusal: texts.refusal,
    ...(texts.reasoning === null ? {} : { reasoning_content: texts.reasoning }),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
  const words = wordsIn(`${texts.reasoning ?? ''} ${texts.text ?? ''} ${texts.refusal ?? ''}`);
  return {
    id: 'chatcmpl-scripted',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: request.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReasonOf(answer) }],
    ...(answer.usage === null ? {} : { usage: usageOf(answer, request, words) }),
  };
}

/** The default answer: the last user message, word by word. @experimental */
export function echo(request: ChatRequest): Answer {
  const last = request.messages.findLast((message) => message.role === 'user');
  return { text: contentText(last?.content).split(/(?<=\s)(?=\S)/) };
}

/** The text of a message's content: the string itself, or its text parts joined. @experimental */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (part.type === 'text' ? part.text : '')).join('');
}

export function isPromise<T>(piece: T | PromiseLike<unknown>): piece is PromiseLike<unknown> {
  return typeof piece === 'object' && piece !== null && 'then' in piece;
}

const FIELDS = ['reasoning', 'text', 'refusal'] as const;
const NAMES = { reasoning: 'reasoning_content', text: 'content', refusal: 'refusal' } as const;

function pieces(text: string | Pieces<string> | undefined): Pieces<string> {
  return typeof text === 'string' ? [text] : (text ?? []);
}

type Fragments = readonly (string | PromiseLike<unknown>)[];

function fragmentsOf(call: ScriptedCall): Fragments {
  if (typeof call.arguments === 'string') return [call.arguments];
  return isList(call.arguments) ? call.arguments : [JSON.stringify(call.arguments)];
}

function isList(value: ScriptedCall['arguments']): value is Fragments {
  return Array.isArray(value);
}

function finishReasonOf(answer: Answer): string | null {
  if (answer.finishReason !== undefined) return answer.finishReason;
  return answer.toolCalls?.length ? 'tool_calls' : 'stop';
}

function usageOf(answer: Answer, request: ChatRequest, words: number): object {
  const prompt = answer.usage?.promptTokens ?? wordsIn(request.messages.map(({ content }) => contentText(content)).join(' '));
  const completion = answer.usage?.completionTokens ?? words;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: answer.usage?.cachedTokens ?? 0,
      cache_write_tokens: answer.usage?.cacheWriteTokens ?? 0,
    },
    completion_tokens_details: { reasoning_tokens: answer.usage?.reasoningTokens ?? 0 },
  };
}

function wordsIn(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}
