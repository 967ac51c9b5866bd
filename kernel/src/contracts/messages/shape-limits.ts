/**
 * The limits of the shape of requests and answers, the same for every protocol. They keep the work
 * of a request in proportion to its bytes. All are many times what real clients and models send.
 * Transports and the runtime refuse what exceeds one, with an error that names it.
 *
 * @experimental
 */
export const SHAPE_LIMITS = {
  /** Levels of arrays and objects in JSON. */
  depth: 64,
  /** Objects, arrays, strings, numbers, booleans and nulls in JSON. */
  values: 200_000,
  /** Keys of one object in JSON. */
  keys: 10_000,
  /** Items, or messages, of one request. */
  items: 20_000,
  /** Tool calls of one message: of a caller, or of one answer of a model. */
  calls: 1_024,
  /** Characters of a line that is searched for something: `matchLine`. */
  line: 1_000,
} as const;

/**
 * Runs a pattern on a text from outside: of a caller, a model, a tool or a provider. A pattern may
 * take time that grows with the square of a text, so a text that is too long does not match.
 *
 * @param limit characters, by default `SHAPE_LIMITS.line`.
 * @experimental
 */
export function matchLine(pattern: RegExp, text: string, limit: number = SHAPE_LIMITS.line): RegExpExecArray | null {
  return text.length > limit ? null : pattern.exec(text);
}
