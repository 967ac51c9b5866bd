import type { Message } from '@plugboard/kernel';
import type { ContentPart, FunctionCallPart, Target, ToolMessage } from '@plugboard/kernel/contracts';
import { SHAPE_LIMITS, toolImagesMessage } from '@plugboard/kernel/contracts';
import { type ExtrasSeal, type StepExtras, withExtras } from '@plugboard/turn-routes';
import { invalidField } from '../errors/messages-error.js';
import { type Block, blocksOf, onlyText, partsOf, SIGNATURE, TOOL_CHANGES } from './content.js';
import { asFlag, asList, asObject, asText, asWord, join, quote, required } from './fields.js';
import type { Ignored } from './ignored.js';

/** The conversation of a request. */
export interface RequestMessages {
  readonly messages: readonly Message[];
  /** For each message the path in the request of what it was made of. */
  readonly paths: readonly string[];
}

export interface ConversationRules {
  readonly target: Pick<Target, 'nameAtModel' | 'input'>;
  /** Whether a session may hold the calls that the first results answer. */
  readonly hasSession: boolean;
  /** Opens what the client kept of the model's thinking; undefined if it has no effect. */
  readonly open?: ExtrasSeal['open'] | undefined;
  readonly ignored: Ignored;
}

/** As many as the protocol allows. */
const MAX_MESSAGES = 100_000;
/** Calls of one step, as errors show it. A constant would load data of languages at the start. */
const maxCalls = () => SHAPE_LIMITS.calls.toLocaleString('en');

/**
 * Converts `system` and `messages` to the kernel's messages. Results of tools follow their calls,
 * before anything else that the user says; images in them follow the results.
 *
 * @throws MessagesError 400 for a malformed message, a result without its call, or a call without
 *   its result.
 */
export function conversationOf(system: unknown, messages: unknown, rules: ConversationRules): RequestMessages {
  const list = asList(messages, 'messages');
  if (list.length === 0) throw invalidField('messages', 'at least one message is required');
  if (list.length > MAX_MESSAGES) throw invalidField('messages', `List should have at most ${MAX_MESSAGES} items`);
  const conversation = new ConversationReader(rules);
  if (system != null) conversation.addSystem(systemOf(system, rules.ignored), 'system');
  for (const [index, message] of list.entries()) conversation.add(message, `messages.${index}`);
  return conversation.end();
}

/**
 * What Claude Code tells Anthropic about itself, in the first block of `system`. It changes from
 * conversation to conversation and within them, so that no model server could cache the prompt.
 */
const BILLING = 'x-anthropic-billing-header';

function systemOf(system: unknown, ignored: Ignored): string {
  if (!Array.isArray(system)) return onlyText(system, 'system');
  const billing = system.findIndex((block) => typeof block?.text === 'string' && block.text.startsWith(`${BILLING}:`));
  if (billing < 0) return onlyText(system, 'system');
  ignored.add(`system.${billing}.${BILLING}`);
  return onlyText(system.toSpliced(billing, 1), 'system');
}

function saysNothing({ role, content }: Message): boolean {
  return role === 'system' || content === '';
}

function nothingToAsk() {
  return invalidField('messages', 'no message has content for the model: blocks of unknown types are left out');
}

class ConversationReader implements RequestMessages {
  readonly messages: Message[] = [];
  readonly paths: string[] = [];
  readonly #rules: ConversationRules;
  /** Calls of the last assistant message without a result, with the path of the message. */
  readonly #open = new Map<string, string>();
  /** Ids of the calls and results around the last assistant message. */
  #ids = new Set<string>();
  /** The text and images of user messages that wait for the results of the same turn. */
  #said: { readonly message: Message; readonly path: string }[] = [];
  #images: string[] = [];
  #answered = false;

  constructor(rules: ConversationRules) {
    this.#rules = rules;
  }

  addSystem(text: string, path: string): void {
    if (text.trim() !== '') this.#push({ role: 'system', content: text }, path);
  }

  add(value: unknown, path: string): void {
    const message = asObject(value, path);
    const role = asWord(required(message, 'role', path), join(path, 'role'), ['user', 'assistant', 'system']);
    const place = join(path, 'content');
    const content = required(message, 'content', path);
    if (role === 'user') {
      this.#user(blocksOf(content, place), path);
      return;
    }
    this.#endUser();
    if (role === 'system') this.addSystem(this.#systemText(blocksOf(content, place)), path);
    else this.#assistant(blocksOf(content, place), path);
  }

  end(): this {
    this.#endUser();
    this.#assertAnswered();
    if (!this.#rules.hasSession && this.messages.every(saysNothing)) throw nothingToAsk();
    return this;
  }

  /** The text of a system message. The tools that it adds and removes are no part of it. */
  #systemText(blocks: readonly Block[]): string {
    const texts = blocks.flatMap(({ type, fields, path }) => {
      if (type === 'text') return asText(required(fields, 'text', path), join(path, 'text'));
      if (!TOOL_CHANGES.includes(type)) this.#rules.ignored.add(join(path, type));
      return [];
    });
    return texts.join('\n\n');
  }

  #push(message: Message, path: string): void {
    this.messages.push(message);
    this.paths.push(path);
  }

  #user(blocks: readonly Block[], path: string): void {
    const parts: ContentPart[] = [];
    for (const block of blocks) {
      if (block.type === 'tool_result') this.#result(block);
      else for (const part of this.#checked(partsOf(block, this.#rules.ignored), block)) parts.push(part);
    }
    if (parts.length > 0) this.#said.push({ message: { role: 'user', content: contentOf(parts) }, path });
  }

  /** Refuses what no model connection of the agent takes. */
  #checked(parts: readonly ContentPart[], { type, path }: Block): readonly ContentPart[] {
    if (this.#rules.target.input.includes('image') || parts.every((part) => part.type === 'text')) return parts;
    throw invalidField(path, `The model of this agent takes text only, no '${type}'`);
  }

  #result({ fields, path }: Block): void {
    const id = asText(required(fields, 'tool_use_id', path), join(path, 'tool_use_id'));
    const isOpen = this.#open.delete(id);
    const isOfSession = this.#rules.hasSession && !this.#answered && !this.#ids.has(id);
    if (!isOpen && !isOfSession) {
      throw invalidField(
        path,
        `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${quote(id)}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message, and one result`,
      );
    }
    this.#ids.add(id);
    const { text, images } = this.#resultContent(fields.content, join(path, 'content'));
    const isError = fields.is_error != null && asFlag(fields.is_error, join(path, 'is_error'));
    this.#push({ role: 'tool', tool_call_id: id, content: isError ? `Error: ${text}` : text }, path);
    for (const image of images) this.#images.push(image);
  }

  #resultContent(content: unknown, path: string): { readonly text: string; readonly images: readonly string[] } {
    const texts: string[] = [];
    const images: string[] = [];
    for (const part of content == null ? [] : blocksOf(content, path).flatMap((block) => partsOf(block, this.#rules.ignored))) {
      if (part.type === 'text') texts.push(part.text);
      else if (part.type === 'image_url') images.push(part.image_url.url);
      else texts.push('[document omitted]');
    }
    return { text: texts.join('\n'), images };
  }

  /** Adds what user messages say besides the results: it follows them. */
  #endUser(): void {
    const last = this.paths.at(-1) ?? '';
    if (this.#images.length > 0) this.#push(toolImagesMessage(this.#images), last);
    for (const { message, path } of this.#said) this.#push(message, path);
    this.#images = [];
    this.#said = [];
  }

  #assertAnswered(): void {
    const [path] = this.#open.values();
    if (path === undefined) return;
    const ids = [...this.#open.keys()].map(quote).join(', ');
    throw invalidField(
      path,
      `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message`,
    );
  }

  #assistant(blocks: readonly Block[], path: string): void {
    this.#assertAnswered();
    this.#answered = true;
    this.#ids = new Set();
    const results = new Map(blocks.filter(({ type }) => type === 'mcp_tool_result').map((block) => [useIdOf(block), block]));
    const extras = this.#extrasOf(blocks);
    let text = '';
    let calls: FunctionCallPart[] = [];
    let answers: ToolMessage[] = [];
    const endStep = () => {
      if (text !== '' || calls.length > 0) {
        const content = text === '' ? null : text;
        this.#push(
          withExtras({ role: 'assistant', content, ...(calls.length > 0 && { tool_calls: calls }) }, extras ? [extras] : []),
          path,
        );
      }
      for (const answer of answers) this.#push(answer, path);
      [text, calls, answers] = ['', [], []];
    };
    const add = (call: FunctionCallPart, place: string) => {
      if (calls.push(call) > SHAPE_LIMITS.calls) throw invalidField(place, `a step may have at most ${maxCalls()} tool calls`);
    };
    for (const [at, block] of blocks.entries()) {
      const { type, fields, path: place } = block;
      /** Whether the block before it is a result: a call is one of a further step. */
      const isAfterResult = blocks[at - 1]?.type === 'mcp_tool_result';
      if (type === 'text') {
        if (answers.length > 0) endStep();
        text += asText(required(fields, 'text', place), join(place, 'text'));
      } else if (type === 'tool_use') {
        if (answers.length > 0 && isAfterResult) endStep();
        const id = this.#newId(block);
        add(callOf(id, asText(required(fields, 'name', place), join(place, 'name')), block), place);
        this.#open.set(id, path);
      } else if (type === 'mcp_tool_use') {
        const id = this.#newId(block);
        const result = results.get(id);
        // Without its result, because the agent hides it, a call says nothing to a model.
        const shown = result && this.#resultContent(result.fields.content, join(result.path, 'content'));
        if (!shown || shown.text === '') continue;
        if (answers.length > 0 && isAfterResult) endStep();
        const name = asText(required(fields, 'name', place), join(place, 'name'));
        const server = asText(fields.server_name ?? '', join(place, 'server_name'));
        add(callOf(id, this.#rules.target.nameAtModel(server, name), block), place);
        answers.push({ role: 'tool', tool_call_id: id, content: shown.text });
      } else if (!['mcp_tool_result', 'thinking', 'redacted_thinking'].includes(type)) {
        this.#rules.ignored.add(join(place, type));
      }
    }
    endStep();
  }

  /**
   * What the client kept of the thinking of a step, if this server sealed it. Thinking of other
   * servers is left out and named: no connection here could read it.
   */
  #extrasOf(blocks: readonly Block[]): StepExtras | undefined {
    const { open, ignored } = this.#rules;
    let extras: StepExtras | undefined;
    for (const { type, fields, path } of blocks) {
      if (type === 'thinking' && fields.signature !== SIGNATURE) ignored.add(join(path, type));
      if (type !== 'redacted_thinking') continue;
      const opened = typeof fields.data === 'string' ? open?.(fields.data) : undefined;
      if (opened) extras = opened;
      else ignored.add(join(path, type));
    }
    return extras;
  }

  #newId(block: Block): string {
    const id = asText(required(block.fields, 'id', block.path), join(block.path, 'id'));
    if (id === '') throw invalidField(join(block.path, 'id'), 'String should have at least 1 character');
    if (this.#ids.has(id)) throw invalidField(block.path, `\`tool_use\` ids must be unique, and '${quote(id)}' is not`);
    this.#ids.add(id);
    return id;
  }
}

function callOf(id: string, name: string, { fields, path }: Block): FunctionCallPart {
  const input = asObject(fields.input ?? {}, join(path, 'input'));
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input) } };
}

function useIdOf({ fields, path }: Block): string {
  return asText(required(fields, 'tool_use_id', path), join(path, 'tool_use_id'));
}

/** Text alone is one string: not every model server takes parts. */
function contentOf(parts: readonly ContentPart[]): string | readonly ContentPart[] {
  const texts = parts.flatMap((part) => (part.type === 'text' ? part.text : []));
  return texts.length === parts.length ? texts.join('\n\n') : parts;
}
