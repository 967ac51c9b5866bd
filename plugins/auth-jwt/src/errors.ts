import { errors } from 'jose';

/** Why a token cannot be checked now: the caller gets 503, never in. The message is for the log, and names no more than the configuration does. */
export class KeysUnavailable extends Error {
  override readonly name: string = 'KeysUnavailable';
}

/** The issuer calls itself otherwise than the configuration does: no waiting helps. */
export class OtherIssuer extends KeysUnavailable {
  override readonly name = 'OtherIssuer';
}

/** Without its query, which may hold a key. */
function shown({ origin, pathname }: URL): string {
  return origin + pathname;
}

export function noAnswer(address: URL, cause: unknown): KeysUnavailable {
  const { message, cause: deeper } = cause as Error;
  const why = deeper instanceof Error && deeper.message !== '' ? `${message}: ${deeper.message}` : message;
  return new KeysUnavailable(`${shown(address)} does not answer (${why})`, { cause });
}

export function wrongStatus(address: URL, status: number): KeysUnavailable {
  const redirect = status >= 300 && status < 400 ? '; redirects are not followed' : '';
  return new KeysUnavailable(`${shown(address)} answered with status ${status}${redirect}`);
}

export function tooLarge(address: URL, limit: number): KeysUnavailable {
  return new KeysUnavailable(`${shown(address)} answered with more than ${limit} bytes`);
}

export function wrongContent(address: URL, what: string): KeysUnavailable {
  return new KeysUnavailable(`${shown(address)} answered with what is no ${what}`);
}

export function wrongKeyAddress(address: URL, fault: string): KeysUnavailable {
  return new KeysUnavailable(`the jwks_uri of ${shown(address)} ${fault}`);
}

export function otherIssuer(address: URL, named: unknown): OtherIssuer {
  const name = typeof named === 'string' ? JSON.stringify(named.slice(0, 200)) : 'none';
  return new OtherIssuer(`is not what ${shown(address)} calls itself, which is ${name}; write it exactly so`);
}

/** Why a token is refused, for the log. Constants: nothing of a token is in them. */
export const MALFORMED = 'a malformed JWT';
export const NO_PROJECT_CLAIM = 'the claim that tells the project is missing, or no text';
export const UNMAPPED = 'no project stands for the claim';
export const UNKNOWN_PROJECT = 'the project does not stand under projects';
export const TOO_DEEP = 'its claims are nested too deeply';
export const BAD_SUBJECT = 'the claim sub is no text';

const REASONS: Readonly<Record<string, string>> = {
  [errors.JOSEAlgNotAllowed.code]: 'signed in a way that is not allowed',
  [errors.JWKSNoMatchingKey.code]: 'signed with a key that the issuer does not publish',
  [errors.JWKSMultipleMatchingKeys.code]: 'names none of the issuer’s keys, several of which would do',
  [errors.JWSSignatureVerificationFailed.code]: 'a wrong signature',
  [errors.JWSInvalid.code]: MALFORMED,
  [errors.JWTInvalid.code]: MALFORMED,
};

/** What is wrong with the claims that are always checked. */
const CLAIMS: Readonly<Record<string, string>> = {
  iss: 'another issuer, or none',
  aud: 'for another audience, or none',
  exp: 'without the claim exp',
  nbf: 'not valid yet',
  iat: 'the claim iat is missing, or in the future',
};

/** The reason for which `jose` does not take a token. */
export function refusalOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return error.claim === 'iat' ? 'older than maxTokenAge' : 'expired';
  if (error instanceof errors.JWTClaimValidationFailed) return CLAIMS[error.claim] ?? MALFORMED;
  const reason = error instanceof errors.JOSEError ? REASONS[error.code] : undefined;
  return reason ?? 'its header, or the key that it names, is of a kind that cannot be used';
}
