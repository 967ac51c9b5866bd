import { createHash } from 'node:crypto';

/** Bytes of what comes after the entry. */
const MAX_BYTES = 512;

/**
 * The session of a chat: `<entry>:<chat>`, then `:<thread>`, then `~<n>` after the n-th `/new`. A
 * `~` of the chat's own id is doubled, so that no chat reaches the session of another.
 */
export function sessionKey(
  entry: string,
  { chat, thread }: { readonly chat: string; readonly thread?: string | undefined },
  sessions = 0,
): string {
  const place = [chat, ...(thread === undefined ? [] : [thread])].join(':').replaceAll('~', '~~');
  const key = sessions === 0 ? place : `${place}~${sessions}`;
  const isLong = Buffer.byteLength(key) > MAX_BYTES;
  return `${entry}:${isLong ? createHash('sha256').update(key).digest('hex') : key}`;
}
