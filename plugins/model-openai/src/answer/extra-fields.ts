import { isObject, isText } from '../json/json.js';

type Fields = Readonly<Record<string, unknown>>;

/** Text that arrives in pieces. */
const REASONING_TEXTS = ['reasoning_content', 'reasoning'] as const;
/** Lists of blocks: OpenRouter's and LiteLLM's. */
const REASONING_LISTS = ['reasoning_details', 'thinking_blocks'] as const;
/** Objects with thought signatures, of messages and of tool calls: Gemini's and LiteLLM's. */
const OBJECTS = ['extra_content', 'provider_specific_fields'] as const;
const CALL_TEXTS = ['thought_signature'] as const;

/**
 * Collects the members of a message that its server may expect back. Reasoning goes back in turns
 * with tool calls only: other turns do not need it, and it is long.
 */
export class MessageFields {
  readonly #texts: Record<string, string> = {};
  readonly #lists: Record<string, Fields[]> = {};
  readonly #objects: Record<string, Map<string, unknown>> = {};
  #size = 0;

  /** Characters of all members so far, as JSON. */
  get size(): number {
    return this.#size;
  }

  /** @returns whether the delta has any such member. */
  add(delta: Fields): boolean {
    let found = false;
    for (const name of REASONING_TEXTS) {
      const text = delta[name];
      if (!isText(text)) continue;
      found = true;
      this.#size += text.length;
      this.#texts[name] = (this.#texts[name] ?? '') + text;
    }
    for (const name of REASONING_LISTS) {
      const list = delta[name];
      if (!Array.isArray(list) || list.length === 0) continue;
      found = true;
      const blocks = this.#lists[name] ?? [];
      this.#size += JSON.stringify(list).length;
      for (const block of list) if (isObject(block)) addBlock(blocks, block);
      this.#lists[name] = blocks;
    }
    return this.#addObjects(delta) || found;
  }

  #addObjects(delta: Fields): boolean {
    let found = false;
    for (const name of OBJECTS) {
      const object = delta[name];
      if (!isObject(object)) continue;
      found = true;
      this.#size += JSON.stringify(object).length;
      const members = this.#objects[name] ?? new Map<string, unknown>();
      this.#objects[name] = members;
      for (const [key, value] of Object.entries(object)) members.set(key, value);
    }
    return found;
  }

  /** The members for the next requests. */
  fields(withReasoning: boolean): Fields {
    const objects = Object.fromEntries(
      Object.entries(this.#objects).map(([name, members]) => [name, Object.fromEntries(members)]),
    );
    return withReasoning ? { ...this.#texts, ...this.#lists, ...objects } : objects;
  }
}

/** The members of a tool call, or of a fragment of it, that its server may expect back. */
export function callFields(fragment: Fields): Fields {
  const called = isObject(fragment.function) ? fragment.function : {};
  const fields: Record<string, unknown> = {};
  for (const name of OBJECTS) if (isObject(fragment[name])) fields[name] = fragment[name];
  for (const name of CALL_TEXTS) if (isText(fragment[name])) fields[name] = fragment[name];
  const inside = OBJECTS.filter((name) => isObject(called[name])).map((name) => [name, called[name]]);
  return inside.length === 0 ? fields : { ...fields, function: Object.fromEntries(inside) };
}

/** Members of a block whose text arrives in pieces. */
const PIECES = ['text', 'summary', 'data', 'thinking', 'signature'] as const;

/** Appends a block, or the next piece of the last one: a block of the same type and index. */
function addBlock(blocks: Fields[], block: Fields): void {
  const last = blocks.at(-1);
  const isPiece = last !== undefined && block.index !== undefined && last.index === block.index && last.type === block.type;
  if (!isPiece) {
    blocks.push(block);
    return;
  }
  const joined: Record<string, unknown> = { ...last };
  for (const [name, value] of Object.entries(block)) {
    const before = joined[name];
    const isText = (PIECES as readonly string[]).includes(name) && typeof value === 'string' && typeof before === 'string';
    if (value !== null && value !== undefined) joined[name] = isText ? before + value : value;
  }
  blocks[blocks.length - 1] = joined;
}

/** The text of reasoning blocks, for servers that send no plain reasoning beside them. */
export function blocksText(delta: Fields): string {
  const { reasoning_details: blocks } = delta;
  if (!Array.isArray(blocks)) return '';
  return blocks
    .map((block) => (isObject(block) ? (isText(block.text) ? block.text : block.summary) : undefined))
    .filter(isText)
    .join('');
}
