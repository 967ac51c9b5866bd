import { isObject } from '../json/json.js';
import { parseJson, splitJson } from '../json/split-json.js';

/**
 * Joins the fragments of a call's arguments. Several servers repeat themselves; what is repeated is
 * dropped:
 *
 * - `{}` before the real arguments;
 * - the whole arguments again at the end, after complete or incomplete fragments;
 * - the arguments so far in every fragment;
 * - the arguments as a JSON string that contains JSON.
 *
 * @returns one JSON text for each call that was meant. There is more than one where a server joined
 *   parallel calls into one. Text that stays invalid is returned unchanged, and the model gets an
 *   error.
 */
export function joinArguments(fragments: readonly string[]): readonly string[] {
  const text = fragments.join('').trim();
  if (text === '' || text === 'null' || text === '""') return ['{}'];
  const value = parseJson(text);
  if (typeof value === 'string') return joinArguments([value]);
  if (value !== undefined) return [text];

  const values = splitJson(text);
  if (values) return withoutRepetitions(values) ?? [text];
  const last = fragments.at(-1) ?? '';
  if (isCompleteObject(last)) return [last.trim()];
  // The opening brace was sent twice.
  const rest = text.slice(1);
  return text.startsWith('{') && isCompleteObject(rest) ? [rest.trim()] : [text];
}

/** Whether a text is one JSON object. */
export function isCompleteObject(text: string): boolean {
  return /^\s*\{/.test(text) && isObject(parseJson(text));
}

/** Objects that are compared with each other. A server that joins parallel calls joins a few. */
const MAX_JOINED = 32;

/**
 * Drops empty objects, repeated ones, and those that a later one contains and extends.
 * @returns undefined if too many remain to be parallel calls.
 */
function withoutRepetitions(texts: readonly string[]): readonly string[] | undefined {
  const meant = texts.filter((text) => !/^\{\s*\}$/.test(text)).map((text) => new JoinedObject(text));
  // Servers that send the arguments so far in every fragment extend each object in the next one.
  const grown = meant.filter((object, i) => !meant[i + 1]?.contains(object));
  if (grown.length > MAX_JOINED) return undefined;
  const kept = grown.filter((object, i) => !grown.slice(i + 1).some((later) => later.contains(object)));
  return kept.length > 0 ? kept.map(({ text }) => text) : texts.slice(-1);
}

/** One of several values in a row. */
class JoinedObject {
  readonly text: string;
  /** The JSON of each member; undefined if the value is not an object. */
  readonly #members: ReadonlyMap<string, string> | undefined;

  constructor(text: string) {
    this.text = text;
    const value = parseJson(text);
    if (isObject(value)) this.#members = new Map(Object.entries(value).map(([key, member]) => [key, JSON.stringify(member)]));
  }

  /** Whether it has all members of the other one. */
  contains(other: JoinedObject): boolean {
    const whole = this.#members;
    const part = other.#members;
    if (whole === undefined || part === undefined || part.size > whole.size) return false;
    for (const [key, json] of part) if (whole.get(key) !== json) return false;
    return true;
  }
}
