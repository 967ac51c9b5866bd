import type { ChatRequest } from '@plugboard/testing';
import type { Answer } from './provider-server.js';

/** What a provider's form of an answer differs in. */
interface Form {
  /** The name of the field with the reasoning; null if it sends none. */
  readonly reasoning?: string | null;
  readonly usage?: object;
  /** Members of the choice that has the finish reason. */
  readonly last?: object;
  /** Members of a tool call. */
  call?(call: Answer['calls'][number], index: number): object;
  readonly finish?: { readonly text: string; readonly calls: string };
}

const USAGE = { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 };

/** The protocol's JSON body, in a provider's form. */
export function wholeAnswer({ reasoning, text, calls }: Answer, request: ChatRequest, form: Form = {}): object {
  const message = {
    role: 'assistant',
    content: text === '' ? null : text,
    ...reasoningField(reasoning, form),
    ...(calls.length > 0 ? { tool_calls: calls.map((call, i) => toolCall(call, i, form)) } : {}),
  };
  return {
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: request.model,
    choices: [{ index: 0, message, finish_reason: finishOf(calls.length, form), ...form.last }],
    usage: form.usage ?? USAGE,
  };
}

/**
 * The protocol's chunks, in a provider's form: text and reasoning in two pieces, each call in one.
 */
export function streamedAnswer({ reasoning, text, calls }: Answer, request: ChatRequest, form: Form = {}): readonly object[] {
  const chunk = (delta: object, rest: object = {}) => ({
    id: 'x',
    object: 'chat.completion.chunk',
    created: 1,
    model: request.model,
    choices: [{ index: 0, delta, finish_reason: null, ...rest }],
  });
  return [
    chunk({ role: 'assistant', content: '' }),
    ...halves(reasoning).map((half) => chunk(reasoningField(half, form))),
    ...halves(text).map((content) => chunk({ content })),
    ...calls.map((call, i) => chunk({ tool_calls: [{ index: i, ...toolCall(call, i, form) }] })),
    chunk({}, { finish_reason: finishOf(calls.length, form), ...form.last }),
    { id: 'x', object: 'chat.completion.chunk', created: 1, model: request.model, choices: [], usage: form.usage ?? USAGE },
  ];
}

function halves(text: string): readonly string[] {
  return text === '' ? [] : [text.slice(0, 3), text.slice(3)];
}

function reasoningField(text: string, { reasoning = null }: Form): object {
  return reasoning === null ? {} : { [reasoning]: text };
}

function toolCall(call: Answer['calls'][number], index: number, form: Form): object {
  const { id, name, args } = call;
  return { id, type: 'function', function: { name, arguments: JSON.stringify(args) }, ...form.call?.(call, index) };
}

function finishOf(calls: number, { finish }: Form): string {
  return calls > 0 ? (finish?.calls ?? 'tool_calls') : (finish?.text ?? 'stop');
}
