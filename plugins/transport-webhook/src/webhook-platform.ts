import { once } from 'node:events';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import { type ChannelInbox, type Outgoing, type Platform, reasonOf, type SendResult } from '@plugboard/channel-kit';
import type { Clock } from '@plugboard/kernel';
import { bytesOf, type ReplyTo } from './message.js';
import { hostOf, type ReplyAddresses } from './reply-address.js';
import type { Signatures } from './signatures.js';

/** Milliseconds for an answer to a reply. */
const ANSWER = 15_000;

interface WebhookPlatformOptions {
  readonly url: URL;
  readonly addresses: ReplyAddresses;
  readonly signatures: Signatures;
  readonly clock: Clock;
}

/** The receiver of signed messages: posts replies to its address (WH-2). */
export class WebhookPlatform implements Platform<ReplyTo, undefined, string> {
  readonly name = 'webhook';
  readonly tellsFull = true;
  readonly #options: WebhookPlatformOptions;

  constructor(options: WebhookPlatformOptions) {
    this.#options = options;
  }

  /** Messages come by HTTP. */
  async run(inbox: ChannelInbox<ReplyTo, string>, signal: AbortSignal): Promise<void> {
    inbox.connected();
    if (!signal.aborted) await once(signal, 'abort');
  }

  /** A reply is one message, however long. */
  split(text: string): readonly string[] {
    return [text];
  }

  async loadImage(dataUrl: string): Promise<Uint8Array> {
    return bytesOf(dataUrl);
  }

  async send(message: Outgoing<ReplyTo>, signal: AbortSignal): Promise<SendResult<undefined>> {
    const { url, signatures, clock } = this.#options;
    const body = bodyOf(message);
    const headers = { 'content-type': 'application/json', ...signatures.sign(message.id, body, clock.now()) };
    const limit = new AbortController();
    const timer = clock.after(ANSWER, () => limit.abort(new Error(`no answer in ${ANSWER / 1_000} s`)));
    try {
      const { statusCode = 0, headers: answered } = await this.#post(url, headers, body, AbortSignal.any([signal, limit.signal]));
      if (statusCode >= 200 && statusCode < 300) return { kind: 'sent' };
      const reason = `${url.hostname} answered ${statusCode}`;
      if (statusCode === 410) return { kind: 'never', reason };
      const after = waitOf(answered['retry-after'], clock.now());
      return { kind: 'later', reason, ...(after !== undefined && { after }) };
    } catch (error) {
      const reason = limit.signal.aborted ? limit.signal.reason : error;
      return { kind: 'later', reason: `${url.hostname} is not reached: ${reasonOf(reason)}` };
    } finally {
      timer.cancel();
    }
  }

  /** @returns the head of the answer. No redirect is followed. */
  async #post(url: URL, headers: Readonly<Record<string, string>>, body: string, signal: AbortSignal): Promise<IncomingMessage> {
    const { addresses } = this.#options;
    const host = hostOf(url);
    // The lookup is not asked about an address.
    if (isIP(host) !== 0 && !addresses.allows(host)) throw new Error('its address is private');
    const send = url.protocol === 'http:' ? requestHttp : requestHttps;
    const length = Buffer.byteLength(body);
    const request = send(url, {
      method: 'POST',
      headers: { ...headers, 'content-length': length },
      signal,
      agent: false,
      lookup: addresses.lookup,
    });
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.destroy();
    return response;
  }
}

const TYPES = { reply: 'message.reply', failed: 'message.failed', notice: 'message.notice' } as const;

/** The same in every attempt. */
function bodyOf({ kind, at, chat, text, replyTo, agent }: Outgoing<ReplyTo>): string {
  const timestamp = new Date(at).toISOString();
  return JSON.stringify({ type: TYPES[kind], timestamp, chat, text, reply_to: replyTo, agent });
}

/** The milliseconds of a `Retry-After`: seconds, or a date. */
function waitOf(retryAfter: string | undefined, now: number): number | undefined {
  if (retryAfter === undefined) return undefined;
  if (/^\d{1,9}$/.test(retryAfter)) return Number(retryAfter) * 1_000;
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
