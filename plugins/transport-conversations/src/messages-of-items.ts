import { type AssistantMessage, type FunctionCallPart, type Message, TurnError } from '@plugboard/kernel';
import {
  arrayTooLong,
  emptyArray,
  invalidValue,
  type JsonObject,
  objectAt,
  required,
  textAt,
  wrongType,
  wrongValue,
} from '@plugboard/openai-protocol';
import { assistantContent, outputText, userContent } from './given-parts.js';

/** The reference's own figure. */
const MAX_ITEMS = 20;

const TYPES = ['message', 'function_call', 'function_call_output'];

/** What items come to as messages of the kernel's. */
export interface GivenMessages {
  readonly messages: readonly Message[];
  /** For each message the index of the item that it begins with. */
  readonly origins: readonly number[];
}

/**
 * The messages that a caller's items stand for. Calls that follow one another are of one step, and so are those that follow what an assistant said.
 *
 * @param textOnly the name of the model connection that would read them, where that takes text only.
 * @throws ProtocolError 400 that names the first item that cannot be kept.
 */
export function messagesOf(items: unknown, textOnly: string | undefined): GivenMessages {
  if (!Array.isArray(items)) throw wrongType('items', 'an array of objects', items);
  if (items.length > MAX_ITEMS) throw arrayTooLong('items', MAX_ITEMS, items.length);
  const messages: Message[] = [];
  const origins: number[] = [];
  for (const [index, value] of items.entries()) {
    const param = `items[${index}]`;
    const item = objectAt(value, param);
    const type = item.type == null && item.role != null ? 'message' : textAt(required(item, 'type', param), `${param}.type`);
    const last = messages.at(-1);
    if (type === 'function_call' && last?.role === 'assistant') {
      messages[messages.length - 1] = calling(last, item, param);
      continue;
    }
    messages.push(messageOf(type, item, param, textOnly));
    origins.push(index);
  }
  return { messages, origins };
}

/** The same, where there must be something. @throws ProtocolError 400 */
export function someMessagesOf(items: unknown, textOnly: string | undefined): GivenMessages {
  if (Array.isArray(items) && items.length === 0) throw emptyArray('items');
  return messagesOf(items, textOnly);
}

/** What the runtime says is wrong with messages, said of the items that they were made of. */
export async function namingItems<T>({ origins }: GivenMessages, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof TurnError) || error.code !== 'invalid_request') throw error;
    const named = (text: string) =>
      text.replaceAll(/\bmessages\[(\d+)\]/g, (_, index) => `items[${origins[Number(index)] ?? index}]`);
    const param = named(error.options.param ?? 'items')
      .replace(/^messages$/, 'items')
      .replace(/\.tool_call_id$/, '.call_id');
    throw new TurnError('invalid_request', named(error.message), { cause: error, param });
  }
}

function messageOf(type: string, item: JsonObject, param: string, textOnly: string | undefined): Message {
  switch (type) {
    case 'message':
      return saying(item, param, textOnly);
    case 'function_call':
      return calling({ role: 'assistant', content: null }, item, param);
    case 'function_call_output':
      return {
        role: 'tool',
        tool_call_id: idAt(item, param),
        content: outputText(required(item, 'output', param), `${param}.output`),
      };
    default:
      throw wrongValue(`${param}.type`, type, TYPES);
  }
}

function saying(item: JsonObject, param: string, textOnly: string | undefined): Message {
  const role = textAt(required(item, 'role', param), `${param}.role`);
  const content = required(item, 'content', param);
  switch (role) {
    case 'user':
      return { role, content: userContent(content, `${param}.content`, textOnly) };
    case 'assistant':
      return { role, ...assistantContent(content, `${param}.content`) };
    case 'system':
    case 'developer':
      throw invalidValue(
        `${param}.role`,
        `a session keeps no '${role}' messages, since its agent has a prompt of its own: send them with the request that they are for`,
      );
    default:
      throw wrongValue(`${param}.role`, role, ['user', 'assistant']);
  }
}

function calling(message: AssistantMessage, item: JsonObject, param: string): AssistantMessage {
  const name = textAt(required(item, 'name', param), `${param}.name`);
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    throw invalidValue(`${param}.name`, "expected a string that matches the pattern '^[a-zA-Z0-9_-]{1,64}$'");
  }
  const call: FunctionCallPart = {
    id: idAt(item, param),
    type: 'function',
    function: { name, arguments: textAt(required(item, 'arguments', param), `${param}.arguments`) },
  };
  return {
    ...message,
    content: message.content === '' ? null : message.content,
    tool_calls: [...(message.tool_calls ?? []), call],
  };
}

function idAt(item: JsonObject, param: string): string {
  const id = textAt(required(item, 'call_id', param), `${param}.call_id`);
  if (id === '') throw invalidValue(`${param}.call_id`, 'it is empty');
  return id;
}
