import { errors } from 'jose';

/**
 * A token cannot be checked at the moment: the caller gets a 503. The message is for the log and
 * contains nothing of the token.
 */
export class KeysUnavailable extends Error {
  override readonly name: string = 'KeysUnavailable';
}

/** The issuer has another name than the configuration says. Retrying does not help. */
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
  return new KeysUnavailable(`${shown(address)} answered with something other than ${what}`);
}

export function wrongKeyAddress(address: URL, fault: string): KeysUnavailable {
  return new KeysUnavailable(`the jwks_uri of ${shown(address)} ${fault}`);
}

export function otherIssuer(address: URL, named: unknown): OtherIssuer {
  const name = typeof named === 'string' ? JSON.stringify(named.slice(0, 200)) : 'none';
  return new OtherIssuer(`does not match the issuer of ${shown(address)}, which is ${name}: use exactly this name`);
}

/**
 * Reasons for refusing a token, for the log. Constants, so that nothing of a token reaches the log.
 */
const MALFORMED = 'a malformed JWT';
export const NO_PROJECT_CLAIM = 'the claim of the project is missing or not a string';
export const UNMAPPED = 'no project is mapped to the claim';
export const UNKNOWN_PROJECT = 'the project is not under projects';
export const TOO_DEEP = 'its claims are nested too deeply';
export const BAD_SUBJECT = 'the claim sub is not a string';

const REASONS: Readonly<Record<string, string>> = {
  [errors.JOSEAlgNotAllowed.code]: 'signed in a way that is not allowed',
  [errors.JWKSNoMatchingKey.code]: 'signed with a key that the issuer does not publish',
  [errors.JWKSMultipleMatchingKeys.code]: 'names no key, and several keys of the issuer match',
  [errors.JWSSignatureVerificationFailed.code]: 'a wrong signature',
  [errors.JWSInvalid.code]: MALFORMED,
  [errors.JWTInvalid.code]: MALFORMED,
};

/** Reasons by the claims that are always checked. */
const CLAIMS: Readonly<Record<string, string>> = {
  iss: 'another issuer, or none',
  aud: 'for another audience, or none',
  exp: 'without the claim exp',
  nbf: 'not valid yet',
  iat: 'the claim iat is missing, or in the future',
};

/** Converts an error of `jose` to a reason. */
export function refusalOf(error: unknown): string {
  if (error instanceof errors.JWTExpired) return error.claim === 'iat' ? 'older than maxTokenAge' : 'expired';
  if (error instanceof errors.JWTClaimValidationFailed) return CLAIMS[error.claim] ?? MALFORMED;
  const reason = error instanceof errors.JOSEError ? REASONS[error.code] : undefined;
  return reason ?? 'its header, or the key it names, is not supported';
}

/** Whether a token was valid and has expired. */
export function hasExpired(error: unknown): boolean {
  return error instanceof errors.JWTExpired;
}
