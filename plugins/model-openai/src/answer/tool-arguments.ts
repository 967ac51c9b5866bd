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
  if (values) return withoutRepetitions(values);
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

/** Drops empty objects, repeated ones, and those that a later one contains and extends. */
function withoutRepetitions(texts: readonly string[]): readonly string[] {
  const meant = texts.filter((text) => !/^\{\s*\}$/.test(text));
  const values = meant.map(parseJson);
  const kept = meant.filter((_, i) => !values.slice(i + 1).some((later) => contains(later, values[i])));
  return kept.length > 0 ? kept : texts.slice(-1);
}

/** Whether an object has all members of another one. */
function contains(whole: unknown, part: unknown): boolean {
  if (!isObject(whole) || !isObject(part)) return false;
  return Object.entries(part).every(([key, value]) => JSON.stringify(whole[key]) === JSON.stringify(value));
}
