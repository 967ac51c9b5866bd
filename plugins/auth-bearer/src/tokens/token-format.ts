import { crc32 } from 'node:zlib';
import type { IdSource } from '@plugboard/kernel';

/**
 * The format of issued tokens: a prefix for the kind, 32 random characters (190 bits), and a
 * checksum. A mistyped token is recognised without a look-up. Secret scanners find tokens with this
 * expression.
 */
const FORMAT = /^svc[pae]_[0-9A-Za-z]{38}$/;

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_LENGTH = 32;
const CHECKSUM_LENGTH = 6;

/** Project, admin or ephemeral. */
type TokenKind = 'p' | 'a' | 'e';

export function newToken(kind: TokenKind, ids: IdSource): string {
  const body = `svc${kind}_${ids.base62(RANDOM_LENGTH)}`;
  return body + checksumOf(body);
}

/** Whether a value begins like an issued token. Only such values must have the format. */
export function isTokenLike(value: string): boolean {
  return value.startsWith('svc');
}

/** Returns why a value that begins like an issued token cannot be one, or undefined. */
export function tokenProblem(value: string): string | undefined {
  if (!FORMAT.test(value)) return 'a malformed token';
  return value.endsWith(checksumOf(value.slice(0, -CHECKSUM_LENGTH))) ? undefined : 'a token with a wrong checksum';
}

/** The parts of a token that may be shown: `svcp_Hhdw…S4zk`. */
export function hintOf(token: string): string {
  return `${token.slice(0, 9)}…${token.slice(-4)}`;
}

/** The CRC-32 of a text in base 62, most significant digit first. */
function checksumOf(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let place = 0; place < CHECKSUM_LENGTH; place++) {
    digits = DIGITS.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}
