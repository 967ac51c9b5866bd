import { isTokenLike, tokenProblem } from './token-format.js';

/** Maximum length of a credential in bytes. */
export const MAX_SECRET_BYTES = 512;
const MIN_SECRET_BYTES = 16;

/** Why a secret in the configuration is not usable, without quoting it; undefined if it is. */
export function secretProblem(token: string): string | undefined {
  if (token.trim() === '') return `the secret is blank; a token has ${MIN_SECRET_BYTES} to ${MAX_SECRET_BYTES} characters`;
  if (!/^[\x21-\x7e]*$/.test(token)) return 'a token may contain only printable ASCII characters without spaces';
  if (token.length < MIN_SECRET_BYTES) {
    return `a token needs at least ${MIN_SECRET_BYTES} characters, this one has ${token.length}; "plugboard token create" makes one`;
  }
  if (token.length > MAX_SECRET_BYTES)
    return `a token may have at most ${MAX_SECRET_BYTES} characters, this one has ${token.length}`;
  const problem = isTokenLike(token) ? tokenProblem(token) : undefined;
  return problem && `${problem}: a value that begins with "svc" must be a token from "plugboard token create"; copy it again`;
}
