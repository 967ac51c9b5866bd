import { MAX_IMAGE } from '@plugboard/channel-kit';
import type { Message } from 'grammy/types';

/** What the platform needs to load an image: a file of the bot. */
export interface ImageReference {
  readonly file: string;
}

const IMAGE_TYPES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
/** What an agent gets no part of. What Telegram also sends as something else comes first. */
const UNSUPPORTED = {
  animation: 'an animation',
  live_photo: 'a live photo',
  paid_media: 'paid media',
  audio: 'an audio file',
  voice: 'a voice message',
  video: 'a video',
  video_note: 'a video message',
  sticker: 'a sticker',
  story: 'a story',
  venue: 'a place',
  location: 'a location',
  contact: 'a contact',
  poll: 'a poll',
  checklist: 'a checklist',
  dice: 'a die',
  game: 'a game',
  invoice: 'an invoice',
  rich_message: 'a rich message',
} as const satisfies Partial<Record<keyof Message, string>>;

/** The images of a message, and the name of what else it has. Nothing is downloaded. */
export function attachmentsOf(message: Message): {
  readonly images: readonly ImageReference[];
  readonly unsupported: string | undefined;
} {
  for (const [kind, name] of Object.entries(UNSUPPORTED)) {
    if (message[kind as keyof typeof UNSUPPORTED] !== undefined) return { images: [], unsupported: name };
  }
  const { photo, document } = message;
  if (photo !== undefined) {
    // Every size of the photo, the smallest first.
    const largest = photo.findLast(({ file_size = 0 }) => file_size <= MAX_IMAGE);
    return largest ? imageOf(largest.file_id) : { images: [], unsupported: 'an image over 10 MB' };
  }
  if (document === undefined) return { images: [], unsupported: undefined };
  if (!IMAGE_TYPES.has(document.mime_type ?? '')) return { images: [], unsupported: 'a file' };
  if ((document.file_size ?? 0) > MAX_IMAGE) return { images: [], unsupported: 'an image over 10 MB' };
  return imageOf(document.file_id);
}

function imageOf(file: string): { readonly images: readonly ImageReference[]; readonly unsupported: undefined } {
  return { images: [{ file }], unsupported: undefined };
}
