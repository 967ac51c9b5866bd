import { type Incoming, idFault, imageTypeOf, MAX_IMAGE } from '@plugboard/channel-kit';
import type { Account } from '@plugboard/kernel/contracts';
import { HttpError, parseJsonObject } from '@plugboard/transport-http';

/** Where a reply belongs: the body names the chat. */
export interface ReplyTo {
  readonly chat: string;
}

const MAX_IMAGES = 8;
const DATA_URL = /^data:image\/(?:png|jpeg|gif|webp);base64,/;

/**
 * Reads a message: `{"chat","sender","text","images"}`. Other fields are ignored.
 *
 * @param id the `webhook-id`.
 * @throws HttpError 400 if it is no message.
 */
export function messageOf(id: string, body: Uint8Array, account: Account): Incoming<ReplyTo, string> {
  if (!/^(?!.*\.)[\x21-\x7e]{1,256}$/.test(id))
    throw invalid('webhook-id must have 1 to 256 visible ASCII characters, and no dot');
  const { chat, sender, text = '', images = [] } = parseJsonObject(textOf(body), account);
  const from = { chat: idOf('chat', chat), sender: idOf('sender', sender) };
  if (typeof text !== 'string') throw invalid('text must be a string');
  if (!Array.isArray(images) || images.length > MAX_IMAGES)
    throw invalid(`images must be a list of up to ${MAX_IMAGES} data URLs`);
  for (const [index, image] of images.entries()) assertImage(image, `images[${index}]`);
  if (text.trim() === '' && images.length === 0) throw invalid('a message needs text, or images');
  return {
    ids: [id],
    id,
    chat: from.chat,
    to: { chat: from.chat },
    sender: { id: from.sender },
    text: text.toWellFormed(),
    images,
    isPrivate: true,
    isAddressed: true,
  };
}

/** The bytes of an image that `messageOf` has checked. */
export function bytesOf(dataUrl: string): Uint8Array {
  return Buffer.from(dataUrl.slice(dataUrl.indexOf(',') + 1), 'base64');
}

function textOf(body: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw invalid('the body is not UTF-8');
  }
}

function idOf(field: string, value: unknown): string {
  if (typeof value !== 'string') throw invalid(`${field} must be a string`);
  const fault = idFault(field, value);
  if (fault !== undefined) throw invalid(fault);
  return value;
}

function assertImage(image: unknown, field: string): void {
  if (typeof image !== 'string' || !DATA_URL.test(image))
    throw invalid(`${field} must be a data URL of a PNG, JPEG, GIF or WebP image`);
  const bytes = bytesOf(image);
  if (bytes.length > MAX_IMAGE) throw invalid(`${field} is larger than ${MAX_IMAGE / 1e6} MB`);
  if (imageTypeOf(bytes) === undefined) throw invalid(`${field} does not contain a PNG, JPEG, GIF or WebP image`);
}

function invalid(message: string): HttpError {
  return new HttpError(400, `The message is not valid: ${message}.`, { code: 'invalid_message' });
}
