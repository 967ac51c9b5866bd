/** Where a value is in a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

type Body = Record<string, unknown>;

interface KnownList {
  readonly text: string;
  readonly tools: unknown;
  /** Bytes, about. */
  readonly size: number;
}

const MAX_LISTS = 32;
/** Bytes of one list, and of all: text and values. */
const MAX_SIZE = 1024 * 1024;
const MAX_TOTAL_SIZE = 8 * 1024 * 1024;
/** Bytes that a value takes, about. */
const VALUE_SIZE = 64;

/**
 * The lists of tools that callers sent last. A coding agent sends the same tools with each request:
 * they are parsed once, and what others make of a schema can be kept with it.
 *
 * Lists are found by their text and are frozen: a caller learns nothing of another one.
 */
export class KnownTools {
  /** The most recent one first. */
  readonly #known: KnownList[] = [];
  #totalSize = 0;

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
      const size = 2 * list.length + VALUE_SIZE * frozenValues(body.tools);
      if (size <= MAX_SIZE) this.#add(list, body.tools, size);
      return body;
    }
    this.#known.unshift(known);
    // `null` makes no other value valid or longer that stands beside it, as a digit would.
    const body = JSON.parse(`${text.slice(0, start)}null${text.slice(end)}`) as Body;
    body.tools = known.tools;
    return body;
  }

  /** Makes room for a list. */
  #add(list: string, tools: unknown, size: number): void {
    while (this.#known.length >= MAX_LISTS || this.#totalSize + size > MAX_TOTAL_SIZE) {
      this.#totalSize -= this.#known.pop()?.size ?? 0;
    }
    this.#totalSize += size;
    // A slice would keep the whole text in memory.
    this.#known.unshift({ text: Buffer.from(list).toString(), tools, size });
  }
}

/** Freezes a value and all in it. @returns how many values there are. */
function frozenValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(Object.freeze(value)).reduce((sum: number, inner) => sum + frozenValues(inner), 1);
}
