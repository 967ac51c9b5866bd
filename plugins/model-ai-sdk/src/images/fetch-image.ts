import { once } from 'node:events';
import { get as getHttp, type IncomingMessage } from 'node:http';
import { get as getHttps } from 'node:https';
import { isIP } from 'node:net';
import type { AddressPolicy } from '@plugboard/kernel/contracts';
import { imageType } from '../request/media.js';

const MAX_REDIRECTS = 3;
/** Milliseconds for an image, redirects included. */
const TIME_LIMIT = 20_000;

/** An image in base64. */
export interface Image {
  readonly mediaType: string;
  readonly data: string;
}

interface ImageLimits {
  /** Bytes. */
  readonly limit: number;
  readonly addresses: AddressPolicy;
  /** Called before this many bytes of the image are held. May throw. */
  readonly reserve: (bytes: number) => void;
}

/**
 * Fetches an image (AI-13): over http and https, from allowed addresses, which are checked
 * after the name was resolved and after each redirect (S-07).
 *
 * @returns the data in base64.
 * @throws Error with half a sentence that says why not.
 */
export async function fetchImage(url: string, { limit, addresses, reserve }: ImageLimits, signal: AbortSignal): Promise<Image> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(TIME_LIMIT)]);
  let target = url;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await open(target, addresses, limited).catch((error: Error) => {
      throw new Error(`${hostOf(url)} cannot be reached (${error.message})`);
    });
    const { statusCode = 0, headers } = response;
    if (statusCode >= 300 && statusCode < 400 && headers.location !== undefined) {
      response.destroy();
      target = new URL(headers.location, target).href;
      continue;
    }
    if (statusCode !== 200) {
      response.destroy();
      throw new Error(`${hostOf(url)} answered ${statusCode}`);
    }
    const data = (await bodyOf(response, hostOf(url), limit, reserve)).toString('base64');
    const mediaType = imageType(data);
    if (mediaType === undefined) throw new Error(`${hostOf(url)} sent no PNG, JPEG, GIF or WebP image`);
    return { mediaType, data };
  }
  throw new Error(`${hostOf(url)} redirects more than ${MAX_REDIRECTS} times`);
}

async function open(url: string, addresses: AddressPolicy, signal: AbortSignal): Promise<IncomingMessage> {
  const { protocol, hostname } = new URL(url);
  if (protocol !== 'http:' && protocol !== 'https:') throw new Error(`${protocol} is not http or https`);
  const host = hostname.replace(/^\[|\]$/g, '');
  // The lookup is not asked about an address.
  if (isIP(host) !== 0 && !addresses.allows(host)) throw new Error('its address is private');
  const get = protocol === 'http:' ? getHttp : getHttps;
  const options = { signal, agent: false, headers: { accept: 'image/*' }, lookup: addresses.lookup };
  const request = get(url, options);
  const [response] = await once(request, 'response');
  return response;
}

async function bodyOf(response: IncomingMessage, host: string, limit: number, reserve: ImageLimits['reserve']): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of response) {
    size += piece.length;
    if (size > limit) throw new Error(`the image of ${host} is larger than ${limit / 2 ** 20} MiB (imageLimit)`);
    reserve(piece.length);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** The host of a URL, for messages: its path may contain a secret. */
function hostOf(url: string): string {
  return URL.parse(url)?.hostname ?? 'its URL is not valid and';
}
