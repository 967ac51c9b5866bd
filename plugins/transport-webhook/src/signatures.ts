import { createHmac, timingSafeEqual } from 'node:crypto';

/** Seconds that a message may be old, or ahead. */
const TOLERANCE = 5 * 60;
/** Bytes of a secret. */
const MIN_BYTES = 24;
const MAX_BYTES = 64;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** The headers of a message, as Standard Webhooks 1.0.0 has them. */
export interface SignatureHeaders {
  readonly 'webhook-id': string;
  readonly 'webhook-timestamp': string;
  readonly 'webhook-signature': string;
}

/** Returns the bytes of a secret: `whsec_` and base64. @returns undefined if it is no such text. */
export function secretBytes(secret: string): Buffer | undefined {
  const base64 = secret.replace(/^whsec_/, '');
  if (base64 === secret || !BASE64.test(base64)) return undefined;
  const bytes = Buffer.from(base64, 'base64');
  return bytes.length >= MIN_BYTES && bytes.length <= MAX_BYTES ? bytes : undefined;
}

/** Signs and verifies messages (Standard Webhooks 1.0.0) with each of some secrets. */
export class Signatures {
  readonly #secrets: readonly Buffer[];

  /** @param secrets valid ones. */
  constructor(secrets: readonly string[]) {
    this.#secrets = secrets.map((secret) => secretBytes(secret) ?? Buffer.alloc(0));
  }

  /** @param now milliseconds since the epoch. */
  sign(id: string, body: string, now: number): SignatureHeaders {
    const timestamp = String(Math.floor(now / 1_000));
    const signatures = this.#secrets.map((secret) => `v1,${mac(secret, id, timestamp, Buffer.from(body)).toString('base64')}`);
    return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') };
  }

  /** Why a message is refused, for the log. Undefined if a signature is right, and recent. */
  faultOf(headers: SignatureHeaders, body: Uint8Array, now: number): string | undefined {
    const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = headers;
    if (!/^\d{1,12}$/.test(timestamp)) return 'webhook-timestamp is not a number of seconds';
    const age = now / 1_000 - Number(timestamp);
    if (Math.abs(age) > TOLERANCE) return `the message is ${Math.round(Math.abs(age))} s ${age > 0 ? 'old' : 'ahead'}`;
    const expected = this.#secrets.map((secret) => mac(secret, id, timestamp, body));
    const isRight = signature.split(' ').some((one) => {
      if (!one.startsWith('v1,')) return false;
      const given = Buffer.from(one.slice('v1,'.length), 'base64');
      return expected.some((mac) => mac.length === given.length && timingSafeEqual(mac, given));
    });
    return isRight ? undefined : 'the signature is wrong';
  }
}

function mac(secret: Buffer, id: string, timestamp: string, body: Uint8Array): Buffer {
  return createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest();
}
