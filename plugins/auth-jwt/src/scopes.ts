import { DEFAULT_SCOPES, SCOPES, type Scope } from '@plugboard/kernel/contracts';

/**
 * What checked claims allow: of `scope` (RFC 9068, words with spaces between) and `scp` (a list elsewhere), the scopes that Plugboard knows. An
 * issuer that says nothing of scopes leaves it at the usual ones. One that does is taken at its word, also where none of the words is ours.
 */
export function scopesOf({ scope, scp }: Readonly<Record<string, unknown>>): readonly Scope[] {
  if (scope === undefined && scp === undefined) return DEFAULT_SCOPES;
  const words = new Set([scope, scp].flatMap(wordsOf));
  return Object.freeze(SCOPES.filter((known) => words.has(known)));
}

function wordsOf(claim: unknown): readonly unknown[] {
  return typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [];
}
