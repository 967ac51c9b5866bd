import { Account, type ContentPart, type Target } from '@plugboard/kernel/contracts';
import { NOTICES } from '../base/notices.js';
import type { Platform } from '../platform/platform.js';

/** Bytes of an image. */
export const MAX_IMAGE = 10_000_000;
/** Characters of base64 for a byte. */
const BASE64 = 4 / 3;

/** A message that gets one line instead of a turn. */
export class Unreadable extends Error {
  override readonly name = 'Unreadable';
}

/**
 * Loads the images of a message for its turn.
 *
 * @throws Unreadable for what the agent cannot get; TurnError `overloaded` without memory; another
 *   Error if a later attempt may succeed.
 */
export async function imageParts(
  images: readonly unknown[],
  target: Target,
  platform: Platform,
  account: Account,
  signal: AbortSignal,
): Promise<readonly ContentPart[]> {
  if (images.length === 0) return [];
  if (!target.input.includes('image') || !platform.loadImage) throw new Unreadable(NOTICES.noImages(target.name));
  const parts: ContentPart[] = [];
  for (const image of images) {
    const data = await platform.loadImage(image, signal);
    const type = data && data.length <= MAX_IMAGE ? imageTypeOf(data) : undefined;
    if (!data || type === undefined) throw new Unreadable(NOTICES.badImage);
    account.require(Account.costOf(Math.ceil(data.length * BASE64)));
    parts.push({ type: 'image_url', image_url: { url: `data:${type};base64,${Buffer.from(data).toString('base64')}` } });
  }
  return parts;
}

/** The type of an image by how it begins, if it is one that agents get. */
export function imageTypeOf(data: Uint8Array): string | undefined {
  const start = Buffer.from(data.subarray(0, 12)).toString('latin1');
  if (start.startsWith('\x89PNG\r\n')) return 'image/png';
  if (start.startsWith('\xff\xd8\xff')) return 'image/jpeg';
  if (start.startsWith('GIF8')) return 'image/gif';
  return start.startsWith('RIFF') && start.endsWith('WEBP') ? 'image/webp' : undefined;
}
