import { createHash } from 'node:crypto';

/** The longest name that providers accept. */
const MAX_LENGTH = 64;

/**
 * Returns the tool's name at the model: the entry's name if the entry always offers one tool, else
 * `<entry>__<tool>`, so that a new tool never renames another. Without a known entry, it is the
 * tool's own name. Characters that providers reject become `_`, a `_` precedes a digit or `-` at
 * the beginning, and a name that is too long ends in a hash.
 */
export function nameAtModel(entry: string, tool: string, single: boolean): string {
  const whole = entry === '' ? tool : single ? entry : `${entry}__${tool}`;
  const plain = whole.replace(/[^A-Za-z0-9_-]/g, '_').replace(/^[^A-Za-z_]/, '_$&');
  if (plain.length <= MAX_LENGTH) return plain;
  return plain.slice(0, MAX_LENGTH - 8) + createHash('sha256').update(whole).digest('hex').slice(0, 8);
}
