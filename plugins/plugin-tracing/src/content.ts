import type { Attributes } from '@opentelemetry/api';
import type { Message, ModelEvent } from '@plugboard/kernel';

/** Characters of one text, and of the messages of one span. Longer ones are cut. */
const MAX_TEXT = 32 * 1024;
const MAX_MESSAGES = 128 * 1024;

/** A part of a message, as the conventions' JSON Schemas describe it. */
type Part = Readonly<Record<string, unknown>>;

/** What a model received: its instructions, and the newest messages that fit. */
export function requestContent(messages: readonly Message[]): Attributes {
  const instructions = messages.filter(({ role }) => role === 'system').flatMap(partsOf);
  return {
    'gen_ai.system_instructions': instructions.length === 0 ? undefined : JSON.stringify(instructions),
    'gen_ai.input.messages': newestOf(messages.filter(({ role }) => role !== 'system')),
  };
}

/** What a model answers, as it arrives. */
export class AnswerContent {
  readonly #parts: Part[] = [];
  #reasoning = '';
  #text = '';

  add(event: ModelEvent): void {
    if (event.type === 'text') this.#text = appended(this.#text, event.text);
    else if (event.type === 'reasoning') this.#reasoning = appended(this.#reasoning, event.text);
    else if (event.type === 'tool-call') this.#parts.push(callPart(event.id, event.name, event.arguments));
  }

  attributes(finishReason: string | undefined): Attributes {
    const parts = [
      ...(this.#reasoning === '' ? [] : [{ type: 'reasoning', content: this.#reasoning }]),
      ...(this.#text === '' ? [] : [textPart(this.#text)]),
      ...this.#parts,
    ];
    if (parts.length === 0) return {};
    return { 'gen_ai.output.messages': JSON.stringify([{ role: 'assistant', parts, finish_reason: finishReason }]) };
  }
}

/** @param text the arguments of a call as JSON text. */
export function argumentsAttribute(text: string): Attributes {
  return { 'gen_ai.tool.call.arguments': cut(text) };
}

/** @param text the result of a call. Undefined if it has none. */
export function resultAttribute(text: string | undefined): Attributes {
  return { 'gen_ai.tool.call.result': text === undefined ? undefined : JSON.stringify(cut(text)) };
}

/** The newest messages, as one JSON array. */
function newestOf(messages: readonly Message[]): string {
  const written: string[] = [];
  let left = MAX_MESSAGES;
  for (const message of messages.toReversed()) {
    const text = JSON.stringify({ role: message.role, parts: partsOf(message) });
    left -= text.length;
    if (left < 0) break;
    written.unshift(text);
  }
  return `[${written.join(',')}]`;
}

function partsOf(message: Message): Part[] {
  const { content } = message;
  if (message.role === 'tool') return [{ type: 'tool_call_response', id: message.tool_call_id, response: cut(textOf(content)) }];
  const said = typeof content === 'string' ? [textPart(content)] : (content ?? []).map(contentPart);
  const calls = message.role === 'assistant' ? (message.tool_calls ?? []) : [];
  return [
    ...said,
    ...calls.map((call) =>
      call.type === 'function'
        ? callPart(call.id, call.function.name, call.function.arguments)
        : callPart(call.id, call.custom.name, call.custom.input),
    ),
  ];
}

/** Images and files are named, never copied. */
function contentPart(part: { readonly type: string; readonly text?: string; readonly refusal?: string }): Part {
  if (part.type === 'text') return textPart(part.text ?? '');
  return part.type === 'refusal' ? textPart(part.refusal ?? '') : { type: part.type };
}

function textOf(content: Message['content']): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => ('text' in part ? part.text : '')).join('');
}

function textPart(text: string): Part {
  return { type: 'text', content: cut(text) };
}

function callPart(id: string, name: string, text: string): Part {
  return { type: 'tool_call', id, name, arguments: cut(text) };
}

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT).toWellFormed()}… (${text.length} characters)`;
}

/** What is beyond `MAX_TEXT` is not kept: an answer may be long. */
function appended(text: string, more: string): string {
  return text.length > MAX_TEXT ? text : text + more;
}
