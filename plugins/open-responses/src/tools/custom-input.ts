/**
 * A custom tool takes free text. To the model it is a function of one string (CL-3), so its input
 * is the text of that string in the arguments of the call.
 */
export const customInputSchema = {
  type: 'object',
  properties: { input: { type: 'string', description: 'The whole input of the tool, as text.' } },
  required: ['input'],
  additionalProperties: false,
} as const;

/** The arguments of a call with this input. */
export function customArguments(input: string): string {
  return JSON.stringify({ input });
}

/** How arguments begin, up to the text of the input. */
const BEGINNING = /^\s*\{\s*"input"\s*:\s*"/;
/** Characters within which they begin. What does not is not streamed. */
const MAX_BEGINNING = 256;
/** Reads the input of a custom tool from the arguments of its call, piece by piece. */
export class CustomInput {
  #state: 'before' | 'within' | 'after' | 'unknown' = 'before';
  /** What arrived and is not decoded. */
  #pending = '';
  #all = '';

  /** @returns the text of the input that the piece completes. */
  add(piece: string): string {
    if (this.#state === 'after') return '';
    if (this.#state === 'within') return this.#decode(piece);
    this.#all += piece;
    if (this.#state === 'unknown') return '';
    const [beginning] = BEGINNING.exec(this.#all) ?? [];
    if (beginning === undefined) {
      if (this.#all.length > MAX_BEGINNING) this.#state = 'unknown';
      return '';
    }
    this.#state = 'within';
    return this.#decode(this.#all.slice(beginning.length));
  }

  /**
   * The arguments are complete. @returns what is left of the input: all of it, if they do not begin
   * as they should.
   */
  end(): string {
    // Half an escape at the end of cut arguments is no text.
    return this.#state === 'within' || this.#state === 'after' ? '' : inputIn(this.#all);
  }

  #decode(piece: string): string {
    const text = this.#pending + piece;
    const end = endOfWhole(text);
    if (text[end] === '"') this.#state = 'after';
    this.#pending = text.slice(end);
    return decoded(text.slice(0, end));
  }
}

/**
 * The index up to which a JSON string consists of whole characters, or of the quote that ends it.
 */
function endOfWhole(text: string): number {
  for (let i = 0; i < text.length; ) {
    if (text[i] === '"') return i;
    const length = lengthOfCharacter(text, i);
    if (i + length > text.length) return i;
    i += length;
  }
  return text.length;
}

/** The length of a character in a JSON string, escaped or not; at least what it will have. */
function lengthOfCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code >= 0xd800 && code <= 0xdbff) return 2;
  if (text[at] !== '\\') return 1;
  if (at + 1 < text.length && text[at + 1] !== 'u') return 2;
  const isFirstHalf = /^[dD][89abAB]/.test(text.slice(at + 2, at + 4));
  const next = text.slice(at + 6, at + 8);
  // The second half is an escape too.
  return isFirstHalf && '\\u'.startsWith(next) ? 12 : at + 1 < text.length ? 6 : 2;
}

function decoded(text: string): string {
  try {
    return (JSON.parse(`"${text}"`) as string).toWellFormed();
  } catch {
    return text.toWellFormed(); // what the model wrote is no JSON string
  }
}

/** The input in arguments that are written in another way; all of them, if there is none. */
function inputIn(text: string): string {
  try {
    const { input } = JSON.parse(text) as { readonly input?: unknown };
    return typeof input === 'string' ? input : text;
  } catch {
    return text;
  }
}
