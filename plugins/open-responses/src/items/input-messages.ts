import type { Message } from '@plugboard/kernel';
import {
  type ApprovalDecision,
  type FunctionCallPart,
  SHAPE_LIMITS,
  TurnError,
  toolImagesMessage,
  withSummary,
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
import { headerSafeName, type StepExtras } from '@plugboard/turn-routes';
import { answeredBy, CALLS, callOf, RESULTS, resultOf } from './caller-items.js';
import { assistantContent, onlyText, userContent } from './input-parts.js';
import { MessageList } from './message-list.js';

/** Calls of one step, as errors show it. A constant would load data of languages at the start. */
const maxCalls = () => SHAPE_LIMITS.calls.toLocaleString('en');

/** Which items a request may hold, and how they are read. */
export type InputRules = {
  /** The field that holds the items. */
  readonly param: string;
  readonly maxItems: number;
  /** The name of the model connection if it takes text only. */
  readonly textOnly: string | undefined;
} & (
  | {
      /** Everything that a request for an answer may hold. */
      readonly purpose: 'turn';
      /** The name of one of the agent's tools at the model. */
      nameAtModel(entry: string, tool: string): string;
      /** Reads the content of a compaction item. @throws ProtocolError 400 */
      readSummary(content: string, param: string): string;
      /** Opens sealed reasoning; undefined if this server did not seal it for the caller. */
      openReasoning(content: string): StepExtras | undefined;
    }
  /** What is added to a session without a turn: no prompts, and nothing that the server made. */
  | { readonly purpose: 'session' }
);

/** The messages made from a caller's items. */
export interface InputMessages {
  readonly messages: readonly Message[];
  /** The index of the first item that a message was made of. The first item for any other. */
  readonly origins: ReadonlyMap<Message, number>;
}

/** The same, with what was left out. */
export interface ReadItems extends InputMessages {
  /** Items of unknown types, for `x-ignored-params`: `input.3.program`. */
  readonly ignored: readonly string[];
  /**
   * Decisions about calls that wait for approval. Those before the last answer were taken before.
   */
  readonly approvals: readonly ApprovalDecision[];
}

/**
 * Turns items into messages. Calls that follow one another belong to one step, and so do those that
 * follow what an assistant said. Results that are sent again are taken once (CL-7).
 *
 * @throws ProtocolError 400 that names the first item that is not allowed.
 */
export function messagesOf(items: unknown, rules: InputRules): ReadItems {
  const { param, maxItems } = rules;
  if (!Array.isArray(items)) throw wrongType(param, 'an array of objects', items);
  if (items.length > maxItems) throw arrayTooLong(param, maxItems, items.length);
  const input = new InputBuilder(rules, items);
  for (const [index, item] of items.entries()) input.add(item, index);
  return input.finish();
}

/**
 * Restates an error about `messages[i]`, as the runtime reports it, in terms of the items that the
 * messages were made of.
 */
export function nameItems(
  { messages, origins }: InputMessages,
  list: string,
  { message, param }: { readonly message: string; readonly param: string | undefined },
): { readonly message: string; readonly param: string } {
  const originOf = (index: number) => {
    const message = messages[index];
    return message ? (origins.get(message) ?? 0) : index;
  };
  const named = (text: string) => text.replaceAll(/\bmessages\[(\d+)\]/g, (_, index) => `${list}[${originOf(Number(index))}]`);
  const path = named(param ?? list)
    .replace(/^messages$/, list)
    .replace(/\.tool_call_id$/, '.call_id');
  return { message: named(message), param: path };
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

/** The types of items that are added to a session. */
const SESSION_TYPES: readonly string[] = ['message', 'function_call', 'function_call_output'];

/**
 * Items of a request that say nothing to the model, or that other readers see to.
 */
const SILENT: ReadonlySet<string> = new Set([
  'web_search_call',
  'additional_tools',
  'compaction_trigger',
  'item_reference',
  'mcp_approval_request',
]);

/** The names of items that hold a summary. */
const SUMMARIES: ReadonlySet<string> = new Set(['compaction', 'compaction_summary', 'context_compaction']);

/** Whether an item holds a summary. */
export function isSummary(item: Readonly<Record<string, unknown>> | null): boolean {
  return typeof item?.type === 'string' && SUMMARIES.has(item.type);
}

class InputBuilder {
  readonly #list = new MessageList();
  readonly #ignored: string[] = [];
  #approvals: ApprovalDecision[] = [];
  readonly #rules: InputRules;
  readonly #items: readonly unknown[];
  /** The ids of the calls that items have results of. Collected on first use. */
  #results: ReadonlySet<unknown> | undefined;
  /** The index of the assistant message that calls without a result belong to. */
  #step: number | undefined;
  /** The summary in a compaction item, until the message that follows it. */
  #summary: { readonly text: string; readonly index: number } | undefined;

  /** The ids of calls without a result, and of calls that have one. */
  readonly #waiting = new Set<string>();
  readonly #answered = new Set<string>();
  /** The last assistant message with calls, and sealed reasoning of it or of the next. */
  #asking: number | undefined;
  #extras: StepExtras | undefined;
  /** Images in the results of the last calls, shown after all of these results. */
  #images: string[] = [];

  constructor(rules: InputRules, items: readonly unknown[]) {
    this.#rules = rules;
    this.#items = items;
  }

  /** Adds what is left when the last item was added. */
  finish(): ReadItems {
    if (this.#summary) this.#push(undefined, this.#summary.index);
    this.#showImages();
    const origins = this.#list.all();
    return { messages: [...origins.keys()], origins, ignored: this.#ignored, approvals: this.#approvals };
  }

  add(value: unknown, index: number): void {
    const param = `${this.#rules.param}[${index}]`;
    const item = requireObject(value, param);
    const type = typeOf(item, param);
    const { purpose } = this.#rules;
    if (purpose === 'session' && !SESSION_TYPES.includes(type)) throw wrongValue(`${param}.type`, type, SESSION_TYPES);
    if (type === 'message') this.#push(this.#message(item, param), index);
    else if (CALLS.has(type)) this.#callerCall(item, param, index);
    else if (RESULTS.has(type)) this.#result(item, param, index);
    else if (type === 'mcp_call') this.#serverCall(item, param, index);
    else if (type === 'mcp_approval_response') this.#decision(item, param);
    else if (SUMMARIES.has(type)) this.#compaction(item, param, index);
    else if (type === 'reasoning') this.#reasoning(item, index);
    else if (!SILENT.has(type)) this.#ignored.push(headerSafeName(`${this.#rules.param}.${index}.${type}`));
  }

  #push(message: Message | undefined, index: number): void {
    if (message?.role !== 'tool') this.#showImages();
    if (message?.role === 'assistant') this.#approvals = [];
    else this.#extras = undefined;
    const own = message ? [message] : [];
    const messages = this.#summary ? withSummary(this.#summary.text, own) : own;
    for (const [position, one] of messages.entries())
      this.#list.push(one, position === messages.length - 1 ? index : (this.#summary?.index ?? index));
    this.#summary = undefined;
    this.#step = message?.role === 'assistant' ? this.#list.length - 1 : undefined;
  }

  /**
   * Whether the model did not complete a call, as the server said, and the caller did not run it.
   */
  #wasCutOff({ status, call_id: id }: JsonObject): boolean {
    if (status !== 'incomplete') return false;
    this.#results ??= new Set(this.#items.flatMap(answeredBy));
    return !this.#results.has(id);
  }

  #callerCall(item: JsonObject, param: string, index: number): void {
    if (this.#wasCutOff(item)) return;
    const call = callOf(item, param);
    this.#waiting.add(call.id);
    this.#call(call, index, `${param}.call_id`);
  }

  #result(item: JsonObject, param: string, index: number): void {
    const { id, text, images } = resultOf(item, param, this.#rules.purpose === 'turn');
    if (!this.#waiting.delete(id) && this.#answered.has(id)) return;
    this.#answered.add(id);
    for (const image of images) this.#images.push(image);
    this.#addResult({ role: 'tool', tool_call_id: id, content: text }, id, index);
  }

  /**
   * Adds a result directly after its calls: a client whose user interrupts it sends the user's
   * message first. If the call is not in the input, the result comes first, after system messages:
   * the conversation that is continued may end with the call.
   */
  #addResult(message: Message, id: string, index: number): void {
    const isAsked = this.#asking !== undefined && this.#list.callsOf(this.#asking)?.has(id);
    if (!isAsked) {
      if (this.#list.hasAnswer || !this.#list.addFirst(message, index)) this.#push(message, index);
    } else if (this.#asking === this.#list.length - 1) {
      if (this.#summary) this.#push(message, index);
      else this.#list.addResult(this.#asking, message, index);
      this.#extras = undefined;
    } else this.#list.addResult(this.#asking ?? 0, message, index);
    this.#step = undefined;
  }

  /** Tool messages hold text only: images follow them. */
  #showImages(): void {
    if (this.#images.length === 0) return;
    this.#list.push(toolImagesMessage(this.#images), this.#list.lastOrigin);
    this.#images = [];
    this.#step = undefined;
  }

  /**
   * A call of a tool that the caller runs: its result is still to come, or follows as a separate
   * item.
   */
  #call(call: FunctionCallPart, index: number, param: string): void {
    if (!this.#list.isAssistant(this.#step)) this.#push({ role: 'assistant', content: null }, index);
    const calls = this.#list.callsOf(this.#step);
    if (calls?.has(call.id)) {
      throw invalidValue(param, `two calls in a row have the id '${truncate(call.id)}', so their results cannot be told apart`);
    }
    if (calls && calls.size >= SHAPE_LIMITS.calls) throw invalidValue(param, `a step may have ${maxCalls()} calls`);
    calls?.set(call.id, call);
    this.#asking = this.#step;
    this.#sign();
  }

  /**
   * What a model needs of its reasoning goes back to it with the calls of its step, which may stand
   * before or after it. Reasoning of other servers is left out: no connection here could read it.
   */
  #reasoning({ encrypted_content: content }: JsonObject, index: number): void {
    if (content == null || this.#rules.purpose !== 'turn') return;
    this.#extras = typeof content === 'string' ? this.#rules.openReasoning(content) : undefined;
    if (this.#extras) this.#sign();
    else this.#ignored.push(`${this.#rules.param}.${index}.encrypted_content`);
  }

  #sign(): void {
    if (this.#extras && this.#asking !== undefined) this.#list.sign(this.#asking, this.#extras);
  }

  /**
   * A call that ran on the server, with its result or its error. Without either, because the agent
   * hides them, it says nothing to a model.
   */
  #serverCall(item: JsonObject, param: string, index: number): void {
    const result = typeof item.output === 'string' ? item.output : errorText(item.error);
    if (result === undefined || this.#rules.purpose !== 'turn') return;
    const entry = requireString(item.server_label ?? '', `${param}.server_label`);
    const name = this.#rules.nameAtModel(entry, requireString(requireField(item, 'name', param), `${param}.name`));
    const id = requireString(item.id ?? `mcp_${index}`, `${param}.id`);
    const text = requireString(item.arguments ?? '', `${param}.arguments`);
    const waits = (this.#list.callsOf(this.#step)?.size ?? 0) > 0;
    if (!waits) this.#push({ role: 'assistant', content: null }, index);
    this.#call({ id, type: 'function', function: { name, arguments: text === '' ? '{}' : text } }, index, `${param}.id`);
    const content = requireString(result, `${param}.output`);
    this.#list.addResult(this.#asking ?? 0, { role: 'tool', tool_call_id: id, content }, index);
    if (!waits) this.#step = undefined;
  }

  #decision(item: JsonObject, param: string): void {
    const id = requireString(requireField(item, 'approval_request_id', param), `${param}.approval_request_id`);
    const approve = requireField(item, 'approve', param);
    if (typeof approve !== 'boolean') throw wrongType(`${param}.approve`, 'a boolean', approve);
    const reason = item.reason == null ? undefined : requireString(item.reason, `${param}.reason`);
    this.#approvals.push({ id, approve, reason });
  }

  #compaction(item: JsonObject, param: string, index: number): void {
    if (this.#rules.purpose !== 'turn') return;
    const content = requireString(requireField(item, 'encrypted_content', param), `${param}.encrypted_content`);
    const text = this.#rules.readSummary(content, `${param}.encrypted_content`);
    if (this.#summary) this.#push(undefined, this.#summary.index);
    this.#summary = { text, index };
    this.#step = undefined;
  }

  #message(item: JsonObject, param: string): Message {
    const role = requireString(requireField(item, 'role', param), `${param}.role`);
    const content = requireField(item, 'content', param);
    const { textOnly, purpose } = this.#rules;
    switch (role) {
      case 'user':
        return { role, content: userContent(content, `${param}.content`, textOnly) };
      case 'assistant':
        return { role, ...assistantContent(content, `${param}.content`) };
      case 'system':
      case 'developer':
        if (purpose === 'turn') return { role: 'system', content: onlyText(content, `${param}.content`) };
        throw invalidValue(
          `${param}.role`,
          `a session does not store '${role}' messages, because its agent has its own prompt: send them with each request`,
        );
      default:
        throw wrongValue(
          `${param}.role`,
          role,
          purpose === 'turn' ? ['user', 'assistant', 'system', 'developer'] : ['user', 'assistant'],
        );
    }
  }
}

function typeOf(item: JsonObject, param: string): string {
  if (item.type != null) return requireString(item.type, `${param}.type`);
  return item.role == null ? requireString(requireField(item, 'type', param), `${param}.type`) : 'message';
}

/**
 * The text of the error of a failed call: a string, or an object with a message or text parts.
 * Undefined for anything else.
 */
function errorText(error: unknown): string | undefined {
  if (typeof error === 'string') return error;
  if (typeof error !== 'object' || error === null) return undefined;
  const { message, content } = error as JsonObject;
  if (typeof message === 'string') return message;
  if (!Array.isArray(content)) return undefined;
  return content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join('');
}
