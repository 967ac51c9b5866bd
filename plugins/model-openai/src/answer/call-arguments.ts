import { isCompleteObject, joinArguments } from './tool-arguments.js';

const QUOTE = 34;
const BACKSLASH = 92;
const [OPEN_BRACE, CLOSE_BRACE] = [123, 125];
const [OPEN_BRACKET, CLOSE_BRACKET] = [91, 93];
/** Tab, line feed, carriage return, space. */
const BLANKS: ReadonlySet<number> = new Set([9, 10, 13, 32]);

/**
 * The arguments of one tool call as their fragments arrive. Each character is looked at once, and
 * the text is parsed when its brackets close, not with each fragment: an answer has thousands of
 * them (S-55).
 */
export class CallArguments {
  readonly #fragments: string[] = [];
  #length = 0;
  /** `closed`: the brackets of one object have closed. `other`: this is no single object. */
  #state: 'blank' | 'open' | 'closed' | 'other' = 'blank';
  #depth = 0;
  #isInString = false;
  #isEscaped = false;
  /** Whether the closed text is an object; undefined before it was parsed. */
  #isObject: boolean | undefined;

  /** Whether no fragment has arrived. */
  get isEmpty(): boolean {
    return this.#fragments.length === 0;
  }

  /** Whether nothing but white space has arrived. */
  get isBlank(): boolean {
    return this.#state === 'blank';
  }

  /** In characters. */
  get length(): number {
    return this.#length;
  }

  /** Whether the fragments are one JSON object. */
  get isComplete(): boolean {
    if (this.#state !== 'closed') return false;
    this.#isObject ??= isCompleteObject(this.#fragments.join(''));
    return this.#isObject;
  }

  /** @param fragment not empty. */
  add(fragment: string): void {
    this.#fragments.push(fragment);
    this.#length += fragment.length;
    for (let i = 0; i < fragment.length && this.#state !== 'other'; i++) this.#scan(fragment.charCodeAt(i));
  }

  /** Whether the fragments are this text, apart from white space around it. */
  equals(text: string): boolean {
    return this.#fragments.join('').trim() === text.trim();
  }

  /** One JSON text for each call that was meant. */
  texts(): readonly string[] {
    return joinArguments(this.#fragments);
  }

  #scan(char: number): void {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (char === BACKSLASH) this.#isEscaped = true;
      else if (char === QUOTE) this.#isInString = false;
    } else if (this.#state === 'open') {
      if (char === QUOTE) this.#isInString = true;
      else if (char === OPEN_BRACE || char === OPEN_BRACKET) this.#depth += 1;
      else if (char === CLOSE_BRACE || char === CLOSE_BRACKET) this.#depth -= 1;
      if (this.#depth === 0) this.#state = 'closed';
    } else if (!BLANKS.has(char)) {
      this.#state = this.#state === 'blank' && char === OPEN_BRACE ? 'open' : 'other';
      this.#depth = 1;
    }
  }
}
