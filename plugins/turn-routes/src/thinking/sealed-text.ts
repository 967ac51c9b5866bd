import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
/** Bytes of the nonce in front of a token, and of the authentication tag at its end. */
const NONCE = 12;
const TAG = 16;

/**
 * Makes a token of a text that a caller keeps for the server. The caller can neither read nor forge
 * it.
 *
 * @param key 32 bytes.
 * @param project the only project that can use the token.
 */
export function sealText(text: string, key: Uint8Array, project: string): string {
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(project));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64url');
}

/** Returns the text in a token; undefined if it was not made with this key and project. */
export function openText(token: string, key: Uint8Array, project: string): string | undefined {
  const bytes = Buffer.from(token, 'base64url');
  if (bytes.length < NONCE + TAG) return undefined;
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE), { authTagLength: TAG });
  decipher.setAAD(Buffer.from(project)).setAuthTag(bytes.subarray(-TAG));
  try {
    return decipher.update(bytes.subarray(NONCE, -TAG), undefined, 'utf8') + decipher.final('utf8');
  } catch {
    return undefined;
  }
}
