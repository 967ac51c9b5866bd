import { createHash } from 'node:crypto';

/** What the providers take at the most. */
const LONGEST = 64;

/**
 * The name that a model knows a tool by: the entry's where the entry by its nature offers one, else `<entry>__<tool>`, so that adding a tool never renames another.
 * What providers do not take becomes `_`; what is too long ends in a hash of the whole.
 */
export function nameAtModel(entry: string, tool: string, single: boolean): string {
  const whole = single ? entry : `${entry}__${tool}`;
  const plain = whole.replace(/[^A-Za-z0-9_-]/g, '_');
  if (plain.length <= LONGEST) return plain;
  return plain.slice(0, LONGEST - 8) + createHash('sha256').update(whole).digest('hex').slice(0, 8);
}
