import { type Clock, parseDuration, parseSize } from '@plugboard/kernel';
import { CLOCK, CONFIG, inject, injectable } from '@plugboard/kernel/injection';
import type { Context, Middleware } from 'koa';
import bodyParser from 'koa-bodyparser';
import type { HttpConfig } from '../config.js';
import {
  bodyTooLarge,
  nestedTooDeep,
  notJson,
  requestTimeout,
  unsupportedCharset,
  unsupportedContentType,
  unsupportedEncoding,
} from '../errors/refusals.js';
import { parseContentType } from './content-type.js';
import { nestsDeeperThan } from './nesting.js';

/** Levels of arrays and objects. */
const NESTING_LIMIT = 64;

export interface JsonBody {
  readonly text: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** Reads JSON bodies. Checks, in this order: headers, length, bytes, nesting, JSON. */
@injectable()
export class JsonBodies {
  readonly #limit: number;
  readonly #timeout: number;
  readonly #clock: Clock;
  /** Collects text only. Its own JSON mode accepts arrays, inflates, and writes error responses. */
  readonly #collect: Middleware;

  constructor(@inject(CONFIG) config: HttpConfig, @inject(CLOCK) clock: Clock) {
    this.#limit = parseSize(config.bodyLimit);
    this.#timeout = parseDuration(config.bodyTimeout);
    this.#clock = clock;
    this.#collect = bodyParser({
      enableTypes: ['text'],
      extendTypes: { text: ['application/json'] },
      textLimit: String(this.#limit),
    });
  }

  /** @throws HttpError if the body is not a JSON object in UTF-8, or exceeds a limit of size, time or nesting. */
  async read(ctx: Context): Promise<JsonBody> {
    const { headers } = ctx.req;
    checkType(headers['content-type']);
    if ((headers['content-encoding'] ?? 'identity') !== 'identity') throw unsupportedEncoding();
    if (Number(headers['content-length'] ?? 0) > this.#limit) throw bodyTooLarge(this.#limit);
    if (/100-continue/i.test(headers.expect ?? '')) ctx.res.writeContinue();
    const text = await this.#text(ctx);
    return { text, value: parseJsonObject(text) };
  }

  #text(ctx: Context): Promise<string> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(this.#timeout, () => reject(requestTimeout()));
      this.#collect(ctx, done).then(
        () => {
          timer.cancel();
          resolve(String(ctx.request.rawBody ?? ''));
        },
        (error: Error & { readonly status?: number }) => {
          timer.cancel();
          reject(error.status === 413 ? bodyTooLarge(this.#limit) : error);
        },
      );
    });
  }
}

async function done(): Promise<void> {}

/** Strict: without a preflight, browsers send forms and plain text to foreign servers (C-022). */
function checkType(header: string | undefined): void {
  if (header === 'application/json') return;
  const type = parseContentType(header ?? '');
  if (type?.mediaType !== 'application/json') throw unsupportedContentType();
  if (!type.charsets.every((charset) => charset === 'utf-8' || charset === 'utf8')) throw unsupportedCharset();
}

/** Matches every text that can contain a key `__proto__`, escaped or not. Tested first because a reviver makes parsing several times slower. */
const MAY_NAME_PROTO = /proto|\\u00/;

/**
 * Removes keys `__proto__` below the top level, where values are passed on as they are: copying such
 * an object would set its prototype. At the top level the key is an unknown field like any other.
 */
function withoutProto(key: string, value: unknown): unknown {
  if (key !== '' && typeof value === 'object' && value !== null && Object.hasOwn(value, '__proto__')) {
    Reflect.deleteProperty(value, '__proto__');
  }
  return value;
}

/** Parses a JSON object that comes from a caller. @throws HttpError 400 if it is anything else, or nested too deep. */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> {
  if (nestsDeeperThan(NESTING_LIMIT, text)) throw nestedTooDeep(NESTING_LIMIT);
  let value: unknown;
  try {
    value = MAY_NAME_PROTO.test(text) ? JSON.parse(text, withoutProto) : JSON.parse(text);
  } catch {
    throw notJson();
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notJson();
  return value as Readonly<Record<string, unknown>>;
}
