import { crc32 } from 'node:zlib';
import type { IdSource } from '@plugboard/kernel';

/**
 * The form of the tokens that are issued here: what kind it is, 32 random characters (190 bits), and a checksum, so that a mistyped one, or a word that only looks
 * like one, is told from a token without looking anything up. Scanners for secrets know it by the expression below.
 */
const FORM = /^svc[pae]_[0-9A-Za-z]{38}$/;

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM = 32;
const CHECKSUM = 6;

/** For a project, for whoever administers the server, or short-lived. */
export type TokenKind = 'p' | 'a' | 'e';

export function newToken(kind: TokenKind, ids: IdSource): string {
  const body = `svc${kind}_${ids.base62(RANDOM)}`;
  return body + checksumOf(body);
}

/** Whether a value means to be a token of ours. Only such ones are held to the form. */
export function claimsForm(value: string): boolean {
  return value.startsWith('svc');
}

/** What is wrong with a value that means to be a token of ours, or undefined. */
export function faultOfForm(value: string): string | undefined {
  if (!FORM.test(value)) return 'a malformed token';
  return value.endsWith(checksumOf(value.slice(0, -CHECKSUM))) ? undefined : 'a token with a wrong checksum';
}

/** What people are shown of a token, so that they know it again: `svcp_Hhdw…S4zk`. */
export function hintOf(token: string): string {
  return `${token.slice(0, 9)}…${token.slice(-4)}`;
}

/** The CRC-32 of the text, in base 62, the most significant digit first. */
function checksumOf(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let place = 0; place < CHECKSUM; place++) {
    digits = DIGITS.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}
