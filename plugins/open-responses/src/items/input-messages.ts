import type { Message } from '@plugboard/kernel';
import {
  type AssistantMessage,
  type ContentPart,
  type FunctionCallPart,
  type ToolMessage,
  TurnError,
  type UserMessage,
} from '@plugboard/kernel/contracts';
import {
  arrayTooLong,
  invalidValue,
  type JsonObject,
  requireField,
  requireObject,
  requireString,
  truncate,
  wrongType,
  wrongValue,
} from '@plugboard/openai-protocol';
import { decodeSummary, summaryText } from './compaction.js';
import { assistantContent, onlyText, userContent } from './input-parts.js';

/** What items a request may hold. */
export interface InputRules {
  /** The field that holds the items. */
  readonly param: string;
  readonly maxItems: number;
  /** The name of the model connection if it takes text only. */
  readonly textOnly: string | undefined;
  /**
   * `turn`: everything that a request for an answer may hold. `session`: what is added to a session
   * without a turn, that is no prompts and nothing that the server made.
   */
  readonly purpose: 'turn' | 'session';
}

/** The messages made from a caller's items. */
export interface InputMessages {
  readonly messages: readonly Message[];
  /** For each message the index of the first item that it was made of. */
  readonly origins: readonly number[];
}

/**
 * Turns items into messages. Calls that follow one another belong to one step, and so do those that
 * follow what an assistant said.
 *
 * @throws ProtocolError 400 that names the first item that is not allowed.
 */
export function messagesOf(items: unknown, rules: InputRules): InputMessages {
  const { param, maxItems } = rules;
  if (!Array.isArray(items)) throw wrongType(param, 'an array of objects', items);
  if (items.length > maxItems) throw arrayTooLong(param, maxItems, items.length);
  const input = new InputBuilder(rules);
  for (const [index, item] of items.entries()) input.add(item, index);
  return input;
}

/**
 * Restates an error about `messages[i]`, as the runtime reports it, in terms of the items that the
 * messages were made of.
 */
export function nameItems(
  { origins }: InputMessages,
  list: string,
  { message, param }: { readonly message: string; readonly param: string | undefined },
): { readonly message: string; readonly param: string } {
  const named = (text: string) =>
    text.replaceAll(/\bmessages\[(\d+)\]/g, (_, index) => `${list}[${origins[Number(index)] ?? index}]`);
  const place = named(param ?? list)
    .replace(/^messages$/, list)
    .replace(/\.tool_call_id$/, '.call_id');
  return { message: named(message), param: place };
}

/** The same for an error that is thrown. */
export async function namingItems<T>(input: InputMessages, list: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof TurnError) || error.code !== 'invalid_request') throw error;
    const { message, param } = nameItems(input, list, { message: error.message, param: error.options.param });
    throw new TurnError('invalid_request', message, { cause: error, param });
  }
}

const TYPES = {
  turn: ['message', 'function_call', 'function_call_output', 'mcp_call', 'reasoning', 'compaction', 'item_reference'],
  session: ['message', 'function_call', 'function_call_output'],
} as const;

class InputBuilder implements InputMessages {
  readonly messages: Message[] = [];
  readonly origins: number[] = [];
  readonly #rules: InputRules;
  /** The assistant message that calls without a result belong to. */
  #step: number | undefined;
  /** What a compaction item said, until the user message that it goes with. */
  #summary = '';

  constructor(rules: InputRules) {
    this.#rules = rules;
  }

  add(value: unknown, index: number): void {
    const place = `${this.#rules.param}[${index}]`;
    const item = requireObject(value, place);
    const type = typeOf(item, place);
    const known: readonly string[] = TYPES[this.#rules.purpose];
    if (!known.includes(type)) throw wrongValue(`${place}.type`, type, known);
    // The conversation does not include reasoning.
    if (type === 'message') this.#push(this.#message(item, place), index);
    else if (type === 'function_call') this.#call(callOf(item, place), index, `${place}.call_id`);
    else if (type === 'function_call_output') this.#push(resultOf(item, place), index);
    else if (type === 'mcp_call') this.#serverCall(item, place, index);
    else if (type === 'compaction') this.#compaction(item, place, index);
  }

  #push(message: Message, index: number): void {
    if (message.role === 'user' && this.#summary !== '') {
      // In place of the user message that the summary was kept in.
      this.messages.pop();
      this.origins.pop();
      this.messages.push(withSummary(this.#summary, message));
    } else this.messages.push(message);
    this.origins.push(index);
    this.#summary = '';
    this.#step = message.role === 'assistant' ? this.messages.length - 1 : undefined;
  }

  /**
   * A call of a tool that the caller runs: its result is still to come, or follows as a separate
   * item.
   */
  #call(call: FunctionCallPart, index: number, param: string): void {
    const asking = this.#step === undefined ? undefined : this.messages[this.#step];
    if (asking?.role === 'assistant' && asking.tool_calls?.some(({ id }) => id === call.id)) {
      throw invalidValue(param, `two calls in a row have the id '${truncate(call.id)}', so their results cannot be told apart`);
    }
    if (asking?.role === 'assistant' && this.#step !== undefined) this.messages[this.#step] = calling(asking, call);
    else this.#push(calling({ role: 'assistant', content: null }, call), index);
  }

  /**
   * A call that ran on the server, with its result. Without its result, which the agent may hide,
   * it says nothing to a model.
   */
  #serverCall(item: JsonObject, place: string, index: number): void {
    if (typeof item.output !== 'string') return;
    const label = requireString(item.server_label ?? '', `${place}.server_label`);
    const name = nameAtModel(label, requireString(requireField(item, 'name', place), `${place}.name`));
    const id = requireString(requireField(item, 'id', place), `${place}.id`);
    const text = requireString(item.arguments ?? '', `${place}.arguments`);
    const asking = this.#step === undefined ? undefined : this.messages[this.#step];
    const waits = asking?.role === 'assistant' && (asking.tool_calls?.length ?? 0) > 0;
    if (!waits) this.#push({ role: 'assistant', content: null }, index);
    this.#call({ id, type: 'function', function: { name, arguments: text === '' ? '{}' : text } }, index, `${place}.id`);
    this.messages.push({ role: 'tool', tool_call_id: id, content: requireString(item.output, `${place}.output`) });
    this.origins.push(index);
    if (!waits) this.#step = undefined;
  }

  #compaction(item: JsonObject, place: string, index: number): void {
    const content = requireString(requireField(item, 'encrypted_content', place), `${place}.encrypted_content`);
    const text = summaryText(decodeSummary(content, `${place}.encrypted_content`));
    this.#push({ role: 'user', content: text }, index);
    this.#summary = text;
  }

  #message(item: JsonObject, place: string): Message {
    const role = requireString(requireField(item, 'role', place), `${place}.role`);
    const content = requireField(item, 'content', place);
    const { textOnly, purpose } = this.#rules;
    switch (role) {
      case 'user':
        return { role, content: userContent(content, `${place}.content`, textOnly) };
      case 'assistant':
        return { role, ...assistantContent(content, `${place}.content`) };
      case 'system':
      case 'developer':
        if (purpose === 'turn') return { role: 'system', content: onlyText(content, `${place}.content`) };
        throw invalidValue(
          `${place}.role`,
          `a session does not store '${role}' messages, because its agent has its own prompt: send them with each request`,
        );
      default:
        throw wrongValue(
          `${place}.role`,
          role,
          purpose === 'turn' ? ['user', 'assistant', 'system', 'developer'] : ['user', 'assistant'],
        );
    }
  }
}

function typeOf(item: JsonObject, place: string): string {
  if (item.type != null) return requireString(item.type, `${place}.type`);
  return item.role == null ? requireString(requireField(item, 'type', place), `${place}.type`) : 'message';
}

function callOf(item: JsonObject, place: string): FunctionCallPart {
  const name = requireString(requireField(item, 'name', place), `${place}.name`);
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(name)) {
    throw invalidValue(`${place}.name`, "expected a string that matches the pattern '^[a-zA-Z0-9_-]{1,64}$'");
  }
  const text = requireString(requireField(item, 'arguments', place), `${place}.arguments`);
  return { id: idAt(item, place), type: 'function', function: { name, arguments: text } };
}

function resultOf(item: JsonObject, place: string): ToolMessage {
  const id = idAt(item, place);
  return { role: 'tool', tool_call_id: id, content: onlyText(requireField(item, 'output', place), `${place}.output`) };
}

function calling(message: AssistantMessage, call: FunctionCallPart): AssistantMessage {
  return {
    ...message,
    content: message.content === '' ? null : message.content,
    tool_calls: [...(message.tool_calls ?? []), call],
  };
}

function idAt(item: JsonObject, place: string): string {
  const id = requireString(requireField(item, 'call_id', place), `${place}.call_id`);
  if (id === '') throw invalidValue(`${place}.call_id`, 'it is empty');
  return id;
}

/** What a model most likely knew the tool by. It is history: nothing is called by this name. */
function nameAtModel(label: string, name: string): string {
  const whole = label === '' || label === name ? name : `${label}__${name}`;
  return whole.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, 64) || 'tool';
}

function withSummary(text: string, message: UserMessage): UserMessage {
  const { content } = message;
  const parts: string | readonly ContentPart[] =
    typeof content === 'string' ? text + content : [{ type: 'text', text }, ...content];
  return { ...message, content: parts };
}
