import type { SlackImage } from '../base/slack.js';

/** Bytes of an image. */
const MAX_SIZE = 10 * 1024 * 1024;
/** Milliseconds. */
const TIMEOUT = 30_000;

interface Access {
  readonly apiUrl: string;
  readonly botToken: string;
  readonly signal: AbortSignal;
}

/**
 * Loads an image from Slack. The token goes to Slack alone, and no redirect is followed.
 * @returns undefined if it is gone, too large, or the app may not read files.
 * @throws Error if a later attempt may succeed.
 */
export async function loadImage({ url }: SlackImage, { apiUrl, botToken, signal }: Access): Promise<Uint8Array | undefined> {
  if (!isOfSlack(url, apiUrl)) return undefined;
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${botToken}` },
    redirect: 'manual',
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]),
  });
  const isImage = response.ok && response.headers.get('content-type')?.startsWith('image/') === true;
  if (!isImage) {
    await response.body?.cancel();
    if (response.status === 429 || response.status >= 500) throw new Error(`Slack answers with status ${response.status}`);
    return undefined;
  }
  return bytesOf(response);
}

/** Files are on hosts below the one of the API: `files.slack.com`. */
function isOfSlack(url: string, apiUrl: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname, origin } = new URL(url);
  const api = new URL(apiUrl);
  const isBelow = ['slack.com', api.hostname].some((host) => hostname === host || hostname.endsWith(`.${host}`));
  return origin === api.origin || (protocol === 'https:' && isBelow);
}

async function bytesOf({ body }: Response): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body ?? []) {
    size += chunk.length;
    if (size > MAX_SIZE) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
