import { hash } from 'node:crypto';
import type { Message } from '@plugboard/kernel';
import {
  type AssistantMessage,
  type ToolCallPart,
  type ToolMessage,
  textOf,
  type UserMessage,
} from '@plugboard/kernel/contracts';
import { readConnectionData } from '../extra/connection-data.js';
import { isObject } from '../json/json.js';
import type { Dialect, Placeholder, ToolIds } from '../provider/dialect.js';
import { alternate, userFirst } from './roles.js';
import type { WireMessage } from './wire-message.js';

/**
 * The messages of a request in the form that the server accepts. A message that needs no change is
 * sent as it is.
 *
 * @param fingerprint of the connection's model: the data that it attached to messages is sent back.
 */
export function wireMessages(messages: readonly Message[], dialect: Dialect, fingerprint: string): readonly WireMessage[] {
  /** The ids that the server knows, by those of the conversation. */
  const ids = new Map<string, string>();
  const sent: WireMessage[] = [];
  let before: Message | undefined;
  for (const message of messages) {
    if (message.role === 'assistant') {
      const wire = assistant(message, before, dialect, fingerprint, ids);
      if (wire) sent.push(wire);
    } else if (message.role === 'tool') sent.push(toolResult(message, dialect, ids));
    else if (message.role !== 'system' || !mustReplace(message.content, dialect)) sent.push(promptMessage(message, dialect));
    before = message;
  }
  if (dialect.roles === 'alternate') return alternate(sent);
  return dialect.roles === 'user-first' ? userFirst(sent) : sent;
}

/** Text in place of a message without one, which several servers refuse. */
const EMPTY = '(empty message)';

/** A message of the user or the operator. */
function promptMessage(message: Exclude<Message, AssistantMessage | ToolMessage>, dialect: Dialect): WireMessage {
  let wire = asWire(message);
  if (message.role === 'user' && mustReplace(message.content, dialect)) wire = { ...wire, content: EMPTY };
  return 'name' in message && message.role !== 'function' ? withValidName(wire, dialect) : wire;
}

/** Whether servers refuse a content, which is blank. An unknown server gets it as it is (C-084). */
function mustReplace(content: UserMessage['content'], { provider }: Dialect): boolean {
  return provider !== 'none' && isBlank(content);
}

function isBlank(content: UserMessage['content']): boolean {
  if (typeof content === 'string') return content.trim() === '';
  return content.every((part) => part.type === 'text' && part.text.trim() === '');
}

/** OpenAI refuses names with blanks and some other characters; others refuse all. */
function withValidName({ name, ...rest }: WireMessage, { omit }: Dialect): WireMessage {
  if (omit.has('name') || typeof name !== 'string') return rest as WireMessage;
  return { ...rest, name: name.replace(/[\s<|\\/>]+/g, '_').slice(0, 64) || '_' } as WireMessage;
}

function toolResult(message: ToolMessage, dialect: Dialect, ids: ReadonlyMap<string, string>): WireMessage {
  const { tool_call_id: id } = message;
  const known = ids.get(id) ?? toolCallId(id, dialect.toolIds);
  return known === id ? asWire(message) : { ...message, tool_call_id: known };
}

/** Undefined for a message that says nothing. */
function assistant(
  message: AssistantMessage,
  before: Message | undefined,
  dialect: Dialect,
  fingerprint: string,
  ids: Map<string, string>,
): WireMessage | undefined {
  if (isUnchanged(message, before, dialect)) {
    message.tool_calls?.forEach(({ id }) => {
      ids.delete(id); // of an earlier call with the same id
    });
    return asWire(message);
  }
  const { extra, tool_calls: calls, ...plain } = message;
  const own = readConnectionData(extra, fingerprint);
  const wire: Record<string, unknown> & { role: string } = { ...withValidName(asWire(plain), dialect), ...own?.fields };
  // A refusal is text where the server does not know it.
  if (Array.isArray(wire.content) && dialect.omit.has('refusal')) wire.content = textOf(message.content);
  if (calls) {
    wire.tool_calls = calls.map((call) => toolCall(call, dialect, fingerprint, ids));
    if (textOf(message.content) === '') wire.content = dialect.emptyContent;
  }
  const isOwn = [message, ...(calls ?? [])].some((one) => readConnectionData(one.extra, fingerprint) !== undefined);
  if (dialect.placeholder !== undefined && (calls || before?.role === 'tool')) addPlaceholder(wire, dialect.placeholder, isOwn);
  for (const name of Object.keys(wire)) if (dialect.omit.has(name)) omitField(wire, name);
  return isEmpty(wire) ? undefined : wire;
}

/** Whether an assistant message is sent as it is. */
function isUnchanged(message: AssistantMessage, before: Message | undefined, dialect: Dialect): boolean {
  const { content, tool_calls: calls, extra } = message;
  const isText = typeof content === 'string' && content.trim() !== '';
  if (!isText && !(calls && content === dialect.emptyContent)) return false;
  if (extra || message.name !== undefined) return false;
  if (calls && (dialect.toolIds !== 'any' || calls.some((call) => call.extra !== undefined))) return false;
  if (dialect.placeholder !== undefined && (calls || before?.role === 'tool')) return false;
  for (const name in message) if (dialect.omit.has(name)) return false;
  return true;
}

function toolCall(call: ToolCallPart, dialect: Dialect, fingerprint: string, ids: Map<string, string>): object {
  const { extra, ...plain } = call;
  const own = readConnectionData(extra, fingerprint);
  const id = toolCallId(own?.id ?? call.id, dialect.toolIds);
  ids.set(call.id, id);
  if (own?.fields === undefined || plain.type !== 'function') return { ...plain, id };
  const { function: inside, ...beside } = own.fields;
  return { ...plain, ...beside, id, function: { ...(isObject(inside) ? inside : {}), ...plain.function } };
}

/** Adds what the server requires with its own messages to those of other connections. */
function addPlaceholder(wire: Record<string, unknown>, placeholder: Placeholder, isOwn: boolean): void {
  if ('reasoning' in placeholder) {
    wire.reasoning_content ??= placeholder.reasoning;
    return;
  }
  // Of parallel calls, the first one is signed.
  const [first, ...rest] = Array.isArray(wire.tool_calls) ? wire.tool_calls : [];
  if (isOwn || !isObject(first)) return;
  wire.tool_calls = [{ ...first, extra_content: { google: { thought_signature: placeholder.signature } } }, ...rest];
}

/** A refusal is the text of its message where the server does not know the field. */
function omitField(wire: Record<string, unknown>, name: string): void {
  if (name === 'refusal' && (wire.content === null || wire.content === '')) wire.content = wire.refusal;
  delete wire[name];
}

/** Several servers refuse a message without text and calls, and it says nothing. */
function isEmpty({
  content,
  tool_calls: calls,
  function_call: call,
  refusal,
  audio,
}: Readonly<Record<string, unknown>>): boolean {
  if (calls || call || refusal || audio) return false;
  if (Array.isArray(content))
    return textOf(content).trim() === '' && content.every((part) => isObject(part) && part.type === 'text');
  return typeof content !== 'string' || content.trim() === '';
}

function asWire(message: Message): WireMessage {
  return message as unknown as WireMessage;
}

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The id of a tool call in the form that a server accepts. The same id always becomes the same. */
function toolCallId(id: string, form: ToolIds): string {
  if (form === 'any' || /^[A-Za-z0-9]{9}$/.test(id)) return id;
  const digest = hash('sha256', id, 'buffer');
  return Array.from({ length: 9 }, (_, i) => ALPHABET[(digest[i] ?? 0) % ALPHABET.length]).join('');
}
