import type { Message, ModelConnector } from '@plugboard/kernel';
import type { AssistantMessage, ContentPart, RefusalPart, ToolMessage } from '@plugboard/kernel/contracts';
import { textOfPart } from '../messages/media.js';
import { INVALID_JSON, isEmptyArguments } from '../tools/tool-arguments.js';
import { withoutDeprecated } from './deprecated-messages.js';

type ToolCall = NonNullable<AssistantMessage['tool_calls']>[number];

/**
 * A message in the forms that connections accept. Each form is built once and cached with the
 * message.
 */
interface Prepared {
  /** With valid tool calls. */
  readonly valid: Message;
  /** The same, with text only. Built on first use. */
  text?: Message;
  /** What was wrong with the arguments of calls, by their ids. */
  readonly faults: ReadonlyMap<string, string>;
}

const NO_FAULTS: ReadonlyMap<string, string> = new Map();
const prepared = new WeakMap<Message, Prepared>();

/**
 * Converts a conversation to what a connection accepts. Model servers refuse tool calls whose
 * arguments are not a JSON object or whose name has characters other than letters, digits, `_` and
 * `-`, and text-only models refuse images. Such calls are corrected and their result names the
 * fault; images are replaced by a note. A call of a custom tool becomes one of a function, as which
 * models know such tools. The stored session does not change.
 */
export function messagesFor(connector: ModelConnector, messages: readonly Message[]): readonly Message[] {
  const textOnly = !connector.input.includes('image');
  let faults = NO_FAULTS;
  return withoutDeprecated(messages).map((message) => {
    if (message.role === 'assistant') faults = message.tool_calls ? prepare(message).faults : NO_FAULTS;
    if (faults.size === 0 && isPlain(message)) return message;
    const forms = prepare(message);
    const fault = message.role === 'tool' ? faults.get(message.tool_call_id) : undefined;
    if (fault !== undefined) return withFault(message as ToolMessage, fault);
    if (!textOnly) return forms.valid;
    forms.text ??= asText(forms.valid);
    return forms.text;
  });
}

/** Whether every connection accepts the message as it is. */
function isPlain(message: Message): boolean {
  return typeof message.content === 'string' && !(message.role === 'assistant' && message.tool_calls);
}

function prepare(message: Message): Prepared {
  const known = prepared.get(message);
  if (known) return known;
  const forms = message.role === 'assistant' && message.tool_calls ? withValidCalls(message, message.tool_calls) : undefined;
  const result = forms ?? { valid: message, faults: NO_FAULTS };
  prepared.set(message, result);
  return result;
}

function withValidCalls(message: AssistantMessage, calls: readonly ToolCall[]): Prepared {
  const faults = new Map<string, string>();
  const valid = calls.map((call) => validCall(call, faults));
  if (valid.every((call, i) => call === calls[i])) return { valid: message, faults: NO_FAULTS };
  return { valid: { ...message, tool_calls: valid }, faults };
}

/** Maximum length of a function name at the providers. */
const MAX_NAME = 64;

function validCall(call: ToolCall, faults: Map<string, string>): ToolCall {
  if (call.type !== 'function') {
    const { custom, ...rest } = call;
    const { name, input } = custom;
    return { ...rest, type: 'function', function: { name: validNameOf(name), arguments: JSON.stringify({ input }) } };
  }
  const { name, arguments: given } = call.function;
  const validName = validNameOf(name);
  const validArguments = isJsonObject(given) ? wellFormed(given) : '{}';
  if (validArguments === '{}' && given !== '{}' && !isEmptyArguments(given))
    faults.set(call.id, `${INVALID_JSON} object: ${given.slice(0, 200).toWellFormed()}`);
  if (validName === name && validArguments === given) return call;
  return { ...call, function: { ...call.function, name: validName, arguments: validArguments } };
}

function validNameOf(name: string): string {
  return /^[a-zA-Z0-9_-]{1,64}$/.test(name) ? name : name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, MAX_NAME) || '_';
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** JSON without escaped halves of surrogate pairs, which servers that read the arguments refuse. */
function wellFormed(json: string): string {
  if (!/\\ud/i.test(json)) return json;
  let isSame = true;
  const keep = (text: string) => {
    isSame &&= text.isWellFormed();
    return text.toWellFormed();
  };
  const value: unknown = JSON.parse(json, (_, inner: unknown) => {
    if (typeof inner === 'string') return keep(inner);
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).map(([key, one]) => [keep(key), one]));
  });
  return isSame ? json : JSON.stringify(value);
}

/** Adds the fault to a result from the caller. A result of this server already names it. */
function withFault(message: ToolMessage, fault: string): ToolMessage {
  const content = typeof message.content === 'string' ? message.content : message.content.map(asPlainText).join('');
  return content.startsWith(INVALID_JSON) ? message : { ...message, content: `${fault}\n${content}` };
}

function asText(message: Message): Message {
  const { content } = message;
  if (typeof content === 'string' || content === null) return message;
  const parts: readonly (ContentPart | RefusalPart)[] = content;
  const isJoined = parts.every(({ type }) => type === 'text' || type === 'refusal');
  return { ...message, content: parts.map(asPlainText).join(isJoined ? '' : '\n') } as Message;
}

function asPlainText(part: ContentPart | RefusalPart): string {
  return textOfPart(part, 'this model takes text only');
}
