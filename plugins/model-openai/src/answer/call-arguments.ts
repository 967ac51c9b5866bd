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
  /** Whether nothing but white space has followed the opening brace. */
  #isBare = true;
  /** Whether a fragment begins with all before it, or two braces open: the server repeats. */
  #isRepeated = false;
  /** The end of what arrived, not yet sent. */
  #heldBack = '';
  #hasSent = false;
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

  /**
   * @param fragment not empty.
   * @returns the text that can be sent at once, because the complete arguments will begin with it
   *   whatever else arrives. White space at its end waits for what follows, and so does the closing
   *   brace: servers that repeat themselves continue after it.
   */
  add(fragment: string): string {
    if (this.#fragments.length > 0 && fragment.length >= this.#length && fragment.startsWith(this.#fragments.join('')))
      this.#isRepeated = true;
    this.#fragments.push(fragment);
    this.#length += fragment.length;
    for (let i = 0; i < fragment.length && this.#state !== 'other'; i++) this.#scan(fragment.charCodeAt(i));
    return this.#state === 'open' && !this.#isRepeated ? this.#unsent(fragment) : '';
  }

  /** What is held back, and a fragment up to its last whole character that is not white space. */
  #unsent(fragment: string): string {
    let end = fragment.length;
    while (end > 0 && isHeldBack(fragment.charCodeAt(end - 1))) end--;
    const sent = end === 0 ? '' : this.#heldBack + fragment.slice(0, end);
    this.#heldBack = end === 0 ? this.#heldBack + fragment : fragment.slice(end);
    if (this.#hasSent) return sent;
    this.#hasSent = sent !== '';
    return sent.trimStart();
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
      if (char === OPEN_BRACE && this.#isBare) this.#isRepeated = true;
      this.#isBare &&= BLANKS.has(char);
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

/** Whether a character at the end of a text waits for the next one. */
function isHeldBack(code: number): boolean {
  const isFirstHalf = code >= 0xd800 && code <= 0xdbff;
  return isFirstHalf || String.fromCharCode(code).trim() === '';
}
