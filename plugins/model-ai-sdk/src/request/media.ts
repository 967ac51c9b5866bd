import type { LanguageModelV4FilePart, LanguageModelV4TextPart } from '@ai-sdk/provider';
import { type Message, ModelError } from '@plugboard/kernel';
import { type ContentPart, TurnError } from '@plugboard/kernel/contracts';

/** What user messages consist of at a provider. */
export type UserPart = LanguageModelV4TextPart | LanguageModelV4FilePart;

/** Where images and files come from. */
export interface MediaSource {
  /** Whether the provider fetches this URL (AI-13). @param type `image/*` if it is unknown. */
  takesUrl(url: string, type: string): boolean;
  /** Fetches an image. @throws Error that says why not, TurnError without memory. */
  fetch(url: string): Promise<{ readonly mediaType: string; readonly data: string }>;
  /** Whether files other than images are replaced by a note. */
  readonly omitsFiles: boolean;
}

/**
 * Converts a part of a user message. What cannot be sent becomes a note in the history, so that a
 * session goes on; in a new message it is an error (AI-13).
 *
 * @param isNew whether the message belongs to this request.
 * @throws ModelError that names the part.
 */
export async function userPart(part: ContentPart, isNew: boolean, source: MediaSource): Promise<UserPart> {
  if (part.type === 'text') return { type: 'text', text: part.text.toWellFormed() };
  try {
    const file = await filePart(part, source);
    if (file) return file;
  } catch (error) {
    if (isNew && error instanceof TurnError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    if (isNew) throw refused(`${NOUNS[part.type]} cannot be sent: ${reason}.`);
    return note(part.type);
  }
  if (isNew) throw refused(`${NOUNS[part.type]} cannot be sent to this model.`);
  return note(part.type);
}

/** Images that this server fetches for one request (S-68). */
const MAX_FETCHED = 20;

/** The same source, which fetches the newest images of the messages only. */
export function withFetchLimit(source: MediaSource, messages: readonly Message[]): MediaSource {
  const urls = new Set<string>();
  for (const { role, content } of messages.toReversed()) {
    if (role !== 'user' || typeof content === 'string') continue;
    for (const part of content.toReversed()) {
      if (part.type !== 'image_url' || urls.size >= MAX_FETCHED) continue;
      const { url } = part.image_url;
      if (!url.startsWith('data:') && !source.takesUrl(url, typeOfUrl(url))) urls.add(url);
    }
  }
  const fetch = async (url: string) => {
    if (!urls.has(url)) throw new Error(`a request may have at most ${MAX_FETCHED} images by address`);
    return source.fetch(url);
  };
  return { ...source, fetch };
}

const NOUNS: Readonly<Record<string, string>> = {
  image_url: 'an image',
  input_audio: 'an audio part',
  video_url: 'a video',
  file: 'a file',
};

function note(type: string): UserPart {
  return { type: 'text', text: `[${NOUNS[type] ?? 'a part'} that this model cannot be sent was left out]` };
}

function refused(message: string): ModelError {
  return new ModelError(message, { code: 'invalid_request' });
}

async function filePart(part: ContentPart, source: MediaSource): Promise<UserPart | undefined> {
  switch (part.type) {
    case 'image_url':
      return imagePart(part.image_url.url, source);
    case 'input_audio': {
      const { data, format } = part.input_audio;
      return source.omitsFiles ? undefined : dataPart(format === 'mp3' ? 'audio/mpeg' : `audio/${format}`, data);
    }
    case 'file': {
      const { file_data: url, filename } = part.file;
      const parsed = url === undefined ? undefined : parseDataUrl(url);
      if (!parsed || source.omitsFiles) return undefined;
      return { ...dataPart(parsed.mediaType, parsed.data), ...(filename === undefined ? {} : { filename }) };
    }
    default:
      return undefined;
  }
}

async function imagePart(url: string, source: MediaSource): Promise<UserPart> {
  if (url.startsWith('data:')) {
    const parsed = parseDataUrl(url);
    const mediaType = parsed && imageType(parsed.data);
    if (!parsed || mediaType === undefined) throw new Error('its data is not a PNG, JPEG, GIF or WebP image in base64');
    return dataPart(mediaType, parsed.data);
  }
  const type = typeOfUrl(url);
  if (source.takesUrl(url, type)) return { type: 'file', mediaType: type, data: { type: 'url', url: new URL(url) } };
  const { mediaType, data } = await source.fetch(url);
  return dataPart(mediaType, data);
}

function dataPart(mediaType: string, data: string): LanguageModelV4FilePart {
  return { type: 'file', mediaType, data: { type: 'data', data } };
}

function parseDataUrl(url: string): { readonly mediaType: string; readonly data: string } | undefined {
  const comma = url.indexOf(',');
  const [mediaType = '', ...rest] = url.slice('data:'.length, comma).split(';');
  const data = url.slice(comma + 1);
  if (comma < 0 || rest.at(-1) !== 'base64' || data === '') return undefined;
  return { mediaType: mediaType === '' ? 'text/plain' : mediaType, data };
}

/** The type by the extension: most providers ask for none. */
function typeOfUrl(url: string): string {
  const [, extension = ''] = /\.(png|jpe?g|gif|webp)$/i.exec(URL.parse(url)?.pathname ?? '') ?? [];
  return extension === '' ? 'image/*' : `image/${extension.toLowerCase().replace('jpg', 'jpeg')}`;
}

/** The beginnings of image files, in base64. */
const IMAGE_TYPES: readonly (readonly [beginning: string, mediaType: string])[] = [
  ['iVBORw0KGg', 'image/png'],
  ['/9j/', 'image/jpeg'],
  ['R0lGOD', 'image/gif'],
  ['UklGR', 'image/webp'],
];

/** The type of an image by its data, if it is one that all providers accept. */
export function imageType(base64: string): string | undefined {
  return IMAGE_TYPES.find(([beginning]) => base64.startsWith(beginning))?.[1];
}
