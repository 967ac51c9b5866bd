import type { MessageEntity } from 'grammy/types';
import type { Formatted } from './formatted.js';

/** UTF-16 units of one message. */
export const MAX_UNITS = 4096;

/** Where a text is best cut, the best first. The cut is behind the match. */
const BREAKS = ['\n\n', '\n', '. ', ' '];
/** A message is at least this full before a worse break is taken. */
const FULL_ENOUGH = 0.5;

/**
 * Splits a text into messages of at most `max` units. A cut is between paragraphs, lines, sentences
 * or words, in this order. It is inside an entity only if that is longer than a message, and never
 * inside a surrogate pair.
 */
export function splitFormatted({ text, entities }: Formatted, max = MAX_UNITS): readonly Formatted[] {
  const parts: Formatted[] = [];
  let [near, next]: [MessageEntity[], number] = [[], 0];
  for (let start = 0; start < text.length; ) {
    near = near.filter((entity) => endOf(entity) > start);
    for (let entity = entities[next]; entity && entity.offset < start + max; entity = entities[++next]) near.push(entity);
    const end = text.length - start <= max ? text.length : cutOf(text, near, start, max);
    parts.push(...partOf(text, near, start, end));
    start = end;
  }
  return parts;
}

/** The position behind which a message that begins at `start` ends. */
function cutOf(text: string, entities: readonly MessageEntity[], start: number, max: number): number {
  const limit = wholeCharacters(text, start + max);
  const inside = insidesOf(entities, start, max);
  const window = text.slice(start, limit);
  for (const mark of BREAKS) {
    for (let at = window.length + 1; ; ) {
      at = window.lastIndexOf(mark, at - mark.length - 1) + mark.length;
      if (at < Math.max(max * FULL_ENOUGH, mark.length)) break;
      if (!inside[at]) return start + at;
    }
  }
  // Before the entity that is under way at the limit, if anything comes before it.
  let cut = limit;
  while (cut > start && inside[cut - start]) cut--;
  return cut > start ? cut : limit;
}

/** Which of the positions from `start` on are inside an entity that fits in a message. */
function insidesOf(entities: readonly MessageEntity[], start: number, max: number): readonly boolean[] {
  const changes = new Array<number>(max + 2).fill(0);
  const add = (at: number, change: number) => {
    const index = Math.min(Math.max(at - start, 0), max + 1);
    changes[index] = (changes[index] ?? 0) + change;
  };
  for (const entity of entities) {
    if (entity.length > max) continue;
    add(entity.offset + 1, 1);
    add(endOf(entity), -1);
  }
  let depth = 0;
  return changes.map((change) => {
    depth += change;
    return depth > 0;
  });
}

function endOf({ offset, length }: MessageEntity): number {
  return offset + length;
}

/** The position, or the one before it if it is inside a surrogate pair. */
function wholeCharacters(text: string, at: number): number {
  const isPair = /[\ud800-\udbff]/.test(text.charAt(at - 1)) && /[\udc00-\udfff]/.test(text.charAt(at));
  return isPair ? at - 1 : at;
}

/** A part without the line breaks at its ends. Telegram takes no message that shows nothing. */
function partOf(text: string, entities: readonly MessageEntity[], from: number, to: number): readonly Formatted[] {
  let [start, end] = [from, to];
  while (start < end && text.charAt(start) === '\n') start++;
  while (end > start && /\s/.test(text.charAt(end - 1))) end--;
  const part = text.slice(start, end);
  if (part.trim() === '') return [];
  const own = entities.flatMap((entity) => {
    const offset = Math.max(entity.offset, start);
    const length = Math.min(entity.offset + entity.length, end) - offset;
    return length > 0 ? [{ ...entity, offset: offset - start, length }] : [];
  });
  return [{ text: part, entities: own }];
}
