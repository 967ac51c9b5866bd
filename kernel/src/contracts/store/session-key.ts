/** Bytes of UTF-8. */
const MAX_BYTES = 512;
// biome-ignore lint/suspicious/noControlCharactersInRegex: keys must not have them
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f]/;

/** Why a text is not a valid session key, as a clause in `why`. @public */
export type SessionKeyProblem =
  | { readonly kind: 'too-long'; readonly bytes: number; readonly limit: number }
  | { readonly kind: 'malformed'; readonly why: string };

/**
 * Checks a session key or user name from a request. Returns undefined if it is valid. The text is
 * data and may look like a path or a query, but every store and log must return it unchanged.
 *
 * @public
 */
export function sessionKeyProblem(word: string): SessionKeyProblem | undefined {
  const bytes = Buffer.byteLength(word);
  if (bytes > MAX_BYTES) return { kind: 'too-long', bytes, limit: MAX_BYTES };
  if (!word.isWellFormed()) return { kind: 'malformed', why: 'it contains an unpaired surrogate' };
  if (CONTROL_CHARACTER.test(word)) return { kind: 'malformed', why: 'it contains a control character' };
  return undefined;
}

/** Whether the text is blank, which counts as absent. @public */
export function isBlankKey(word: string): boolean {
  return word.trim() === '';
}
