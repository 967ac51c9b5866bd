import { claimsForm, faultOfForm } from './token-format.js';

/** Bytes of a credential, of whatever form. */
export const LONGEST = 512;
const SHORTEST = 16;

/** What is wrong with a token that somebody wrote down, as half a sentence that does not repeat it; or undefined. */
export function faultOfPlain(token: string): string | undefined {
  if (token.trim() === '') return 'the secret is blank; a token has 16 to 512 characters';
  if (!/^[\x21-\x7e]*$/.test(token)) return 'a token has printable characters of ASCII only, and no blanks';
  if (token.length < SHORTEST)
    return `a token has at least ${SHORTEST} characters, and this one ${token.length}; "plugboard token create" makes one`;
  if (token.length > LONGEST) return `a token has at most ${LONGEST} characters, and this one ${token.length}`;
  const fault = claimsForm(token) ? faultOfForm(token) : undefined;
  return fault && `${fault}: what begins with "svc" must be a token as "plugboard token create" prints it; copy it again`;
}
