import type { Recording } from '../format/recording.js';

/** Writes a value as JSON, so that two values are the same if their texts are. */
export type TextOf = (value: unknown) => string;

/**
 * Texts of the values of a recording: keys in one order, and the ids that the server made replaced
 * by their numbers. Ids of earlier turns, whose calls have the step 0, are the same in a replay.
 */
export function textsOf({ turn, tools }: Pick<Recording, 'turn' | 'tools'>): TextOf {
  const calls = tools.filter(({ step }) => step > 0);
  const made = [turn.id, turn.requestId, ...calls.flatMap(({ id }) => [id, id.replace(/^call_/, 'mcpr_')])];
  const ids = made.map((id) => JSON.stringify(id).slice(1, -1)).filter((id) => id !== '');
  return (value) => {
    let text = JSON.stringify(inOrder(value)) ?? '';
    for (const [index, id] of ids.entries()) if (text.includes(id)) text = text.replaceAll(id, `<id ${index}>`);
    return text;
  };
}

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, inner]) => [key, inOrder(inner)]));
}
