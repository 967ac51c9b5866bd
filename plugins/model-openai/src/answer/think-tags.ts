import type { ModelEvent } from '@plugboard/kernel';

const TAGS = ['think', 'thinking', 'thought', 'reasoning'];
/** Characters of the longest opening tag. */
const MAX_OPENING = Math.max(...TAGS.map((tag) => tag.length)) + '<>'.length;

/** Splits `<think>…</think>` off the beginning of a text, however it is cut into pieces. */
export class ThinkTags {
  #state: 'start' | 'reasoning' | 'gap' | 'text' = 'start';
  #closing = '';
  /** Text that may be a part of a tag. */
  #partial = '';

  /** Whether all that follows is text. */
  get isOver(): boolean {
    return this.#state === 'text';
  }

  add(text: string, events: ModelEvent[]): void {
    let rest = this.#partial + text;
    this.#partial = '';
    if (this.#state === 'start') {
      const trimmed = rest.trimStart();
      const tag = TAGS.find((name) => trimmed.startsWith(`<${name}>`));
      if (tag !== undefined) {
        this.#state = 'reasoning';
        this.#closing = `</${tag}>`;
        rest = trimmed.slice(tag.length + '<>'.length).replace(/^\s+/, '');
      } else if (trimmed.length < MAX_OPENING && TAGS.some((name) => `<${name}>`.startsWith(trimmed))) {
        this.#partial = rest;
        return;
      } else this.#state = 'text';
    }
    if (this.#state === 'reasoning') {
      const end = rest.indexOf(this.#closing);
      const stop = end < 0 ? rest.length - partOf(this.#closing, rest) : end;
      if (stop > 0) events.push({ type: 'reasoning', text: rest.slice(0, stop) });
      if (end < 0) {
        this.#partial = rest.slice(stop);
        return;
      }
      this.#state = 'gap';
      rest = rest.slice(end + this.#closing.length);
    }
    if (this.#state === 'gap') {
      rest = rest.trimStart();
      if (rest === '') return;
      this.#state = 'text';
    }
    if (rest !== '') events.push({ type: 'text', text: rest });
  }

  /** Adds the rest of an answer that ends within a tag. */
  end(events: ModelEvent[]): void {
    if (this.#partial === '') return;
    events.push({ type: this.#state === 'reasoning' ? 'reasoning' : 'text', text: this.#partial });
    this.#partial = '';
  }
}

/** Returns how many characters at the end of a text may begin the tag. */
function partOf(tag: string, text: string): number {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--)
    if (text.endsWith(tag.slice(0, length))) return length;
  return 0;
}
