/** Where a value is in a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

type Body = Record<string, unknown>;

interface KnownList {
  readonly text: string;
  readonly tools: unknown;
}

const MAX_LISTS = 32;
/** Characters. */
const MAX_LENGTH = 256 * 1024;
const MAX_TOTAL_LENGTH = 2 * 1024 * 1024;

/**
 * The lists of tools that callers sent last. A coding agent sends the same tools with each request:
 * they are parsed once, and what others make of a schema can be kept with it.
 *
 * Lists are found by their text and are frozen: a caller learns nothing of another one.
 */
export class KnownTools {
  /** The most recent one first. */
  readonly #known: KnownList[] = [];
  #totalLength = 0;

  /**
   * Parses a JSON object. @param span where its field `tools` is.
   * @throws SyntaxError
   */
  parse(text: string, { start, end }: Span): Body {
    const list = text.slice(start, end);
    const index = this.#known.findIndex((known) => known.text === list);
    const [known] = index < 0 ? [] : this.#known.splice(index, 1);
    if (known === undefined) {
      const body = JSON.parse(text) as Body;
      if (list.length <= MAX_LENGTH) this.#add(list, body.tools);
      return body;
    }
    this.#known.unshift(known);
    const body = JSON.parse(`${text.slice(0, start)}0${text.slice(end)}`) as Body;
    body.tools = known.tools;
    return body;
  }

  /** Makes room for a list. */
  #add(list: string, tools: unknown): void {
    while (this.#known.length >= MAX_LISTS || this.#totalLength + list.length > MAX_TOTAL_LENGTH) {
      this.#totalLength -= this.#known.pop()?.text.length ?? 0;
    }
    this.#totalLength += list.length;
    // A slice would keep the whole text in memory.
    this.#known.unshift({ text: Buffer.from(list).toString(), tools: frozen(tools) });
  }
}

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(frozen);
  return value;
}
