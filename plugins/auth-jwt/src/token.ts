import { type JWTPayload, jwtVerify } from 'jose';
import type { JwtConfig } from './config.js';
import type { KeyCache } from './key-cache.js';

/** Seconds by which the clocks of the issuer and this machine may differ. */
const CLOCK_TOLERANCE = 60;

/**
 * Three base64url parts. The last one may be empty: an unsigned token is recognised, and refused.
 */
const FORM = /^[\w-]+\.[\w-]+\.[\w-]*$/;

export function isToken(credential: string): boolean {
  return !credential.startsWith('svc') && FORM.test(credential);
}

/** The issuer that an unchecked token names; undefined if it is not a string. */
export function namedIssuer(token: string): string | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
    const issuer = typeof claims === 'object' && claims !== null && 'iss' in claims ? claims.iss : undefined;
    return typeof issuer === 'string' ? issuer : undefined;
  } catch {
    return undefined;
  }
}

export interface Expected extends Pick<JwtConfig, 'issuer' | 'audience' | 'algorithms'> {
  /** Milliseconds. */
  readonly maxTokenAge: number | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/**
 * Checks the signature and the required claims of a token, and returns its claims.
 * @throws KeysUnavailable, or an error of `jose` if the token is not valid.
 */
export async function checkedClaims(token: string, keys: KeyCache, expected: Expected): Promise<JWTPayload> {
  const { issuer, audience, algorithms, maxTokenAge, now } = expected;
  const { payload } = await jwtVerify(token, (header, jws) => keys.keyOf(header, jws), {
    issuer,
    audience: [audience].flat(),
    algorithms: [...algorithms],
    requiredClaims: ['exp'], // with an expected issuer and audience, `iss` and `aud` are required as well
    clockTolerance: CLOCK_TOLERANCE,
    currentDate: new Date(now),
    ...(maxTokenAge !== undefined && { maxTokenAge: maxTokenAge / 1000 }),
  });
  return payload;
}
