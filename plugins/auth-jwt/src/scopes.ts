import { DEFAULT_SCOPES, SCOPES, type Scope } from '@plugboard/kernel/contracts';

/**
 * Returns the scopes of checked claims: those of `scope` (RFC 9068, separated by spaces) and `scp`
 * (a list) that Plugboard knows. A token without both claims gets the default scopes. A token with
 * one of them gets no others, even if it names none that Plugboard knows.
 */
export function scopesOf({ scope, scp }: Readonly<Record<string, unknown>>): readonly Scope[] {
  if (scope === undefined && scp === undefined) return DEFAULT_SCOPES;
  const words = new Set([scope, scp].flatMap(wordsOf));
  return Object.freeze(SCOPES.filter((known) => words.has(known)));
}

function wordsOf(claim: unknown): readonly unknown[] {
  return typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? claim : [];
}
