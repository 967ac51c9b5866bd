import { CONVERSATION_PREFIX } from '@plugboard/kernel';
import { optionalTextAt } from './checks.js';
import { invalid, stringTooLong } from './faults.js';

const MAX_BYTES = 512;

/**
 * A word by which callers know a session, or themselves; undefined where it is blank, which is as good as absent.
 *
 * @throws HttpError 400 for what no `session_id` could be either.
 */
export function wordOf(value: unknown, param: string): string | undefined {
  const word = optionalTextAt(value, param);
  if (word === undefined || word.trim() === '') return undefined;
  const bytes = Buffer.byteLength(word);
  if (bytes > MAX_BYTES) throw stringTooLong(param, MAX_BYTES, bytes, 'bytes');
  if (!word.isWellFormed()) throw invalid(param, 'it holds half of a surrogate pair');
  if (/\p{Cc}/u.test(word)) throw invalid(param, 'it holds a control character');
  return word;
}

/** The key that a new session is to have. @throws HttpError 400 for one that could be taken for an opaque id, besides. */
export function keyOf(value: unknown, param: string): string | undefined {
  const key = wordOf(value, param);
  if (key?.startsWith(CONVERSATION_PREFIX)) {
    throw invalid(param, `a key must not begin with '${CONVERSATION_PREFIX}', as the ids do that the server gives`);
  }
  return key;
}
