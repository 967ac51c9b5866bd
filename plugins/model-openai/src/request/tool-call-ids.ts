import { createHash } from 'node:crypto';
import type { ToolIds } from '../provider/dialect.js';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The id of a tool call in the form that a server accepts. The same id always becomes the same. */
export function toolCallId(id: string, form: ToolIds): string {
  if (form === 'any' || /^[A-Za-z0-9]{9}$/.test(id)) return id;
  const digest = createHash('sha256').update(id).digest();
  return Array.from({ length: 9 }, (_, i) => ALPHABET[(digest[i] ?? 0) % ALPHABET.length]).join('');
}
