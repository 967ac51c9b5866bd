/** Bytes of UTF-8. */
const LONGEST = 512;

/** Why a text can be no session's key, nor a part of one. `why` is a clause: `it holds a control character`. */
export type SessionKeyProblem =
  | { readonly kind: 'too-long'; readonly bytes: number; readonly limit: number }
  | { readonly kind: 'malformed'; readonly why: string };

/**
 * What is wrong with a word by which a caller knows a session, or itself; undefined where nothing is. It is no more than data, so it may look like a path or
 * a query; but it must come back as it was given from any store and any log.
 */
export function sessionKeyProblem(word: string): SessionKeyProblem | undefined {
  const bytes = Buffer.byteLength(word);
  if (bytes > LONGEST) return { kind: 'too-long', bytes, limit: LONGEST };
  if (!word.isWellFormed()) return { kind: 'malformed', why: 'it holds half of a surrogate pair' };
  if (/\p{Cc}/u.test(word)) return { kind: 'malformed', why: 'it holds a control character' };
  return undefined;
}

/** Whether such a word says nothing: it is then as good as absent, and no fault either. */
export function isBlankKey(word: string): boolean {
  return word.trim() === '';
}
