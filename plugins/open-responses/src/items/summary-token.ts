import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
/** Bytes of the nonce in front of a token, and of the authentication tag at its end. */
const NONCE = 12;
const TAG = 16;

/**
 * Makes the `encrypted_content` of a compaction item: the summary of a conversation, which its
 * caller can neither read nor forge.
 *
 * @param key 32 bytes.
 * @param project the only project that can use the token.
 */
export function sealSummary(summary: string, key: Uint8Array, project: string): string {
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(project));
  const text = Buffer.concat([cipher.update(summary, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, text, cipher.getAuthTag()]).toString('base64url');
}

/**
 * Returns the summary in a token; undefined if the token was not made with this key and project.
 */
export function openSummary(token: string, key: Uint8Array, project: string): string | undefined {
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
