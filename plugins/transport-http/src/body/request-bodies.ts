import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import { Transform, type TransformCallback } from 'node:stream';
import { type Clock, type PluginContext, parseDuration, parseSize } from '@plugboard/kernel';
import { parseJson } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { Context, Middleware } from 'koa';
import type { HttpConfig } from '../config.js';
import { HttpError } from '../errors/http-error.js';
import {
  bodyExceedsMemory,
  bodyTooLarge,
  missingContentType,
  nestedTooDeep,
  notJson,
  requestTimeout,
  tooManyBodies,
  tooManyKeys,
  tooManyValues,
  unsupportedCharset,
  unsupportedContentType,
  unsupportedEncoding,
} from '../errors/refusals.js';
import type { Exchange } from '../exchange/exchange.js';
import { OWNER_LEVELS } from '../limits/caller.js';
import { MemoryLimits, type MemoryReservation } from '../limits/memory-limits.js';
import { parseContentType } from './content-type.js';
import { exceededLimit, type JsonLimits } from './json-limits.js';

const require = createRequire(import.meta.url);

/** Many times what real clients send. */
const JSON_LIMITS: JsonLimits = { depth: 64, values: 200_000, keys: 10_000 };

/**
 * Bytes of memory that a byte of a body costs: itself, the values parsed from it, and the request
 * to the model.
 */
const COST = 3;

/** Bytes of memory that a piece of a body costs in addition: one byte can be a chunk of its own. */
const PIECE_COST = 512;

/** For requests that announce no body: the collector returns nothing then. */
const NO_BYTES = Buffer.alloc(0);

/** The body of a request. */
export interface RequestBody {
  readonly bytes: Buffer;
  /** The parsed object, or the bytes themselves. */
  readonly value: Readonly<Record<string, unknown>> | Buffer;
}

/**
 * Reads bodies. Checks, in this order: headers, length, memory, bytes, nesting and number of
 * values, JSON.
 */
export class RequestBodies {
  #limit = 0;
  #timeout = 0;
  readonly #clock: Clock;
  readonly #memory: MemoryLimits;
  #collector: Middleware | undefined;

  constructor(@inject(CONTEXT) { config, clock }: PluginContext<HttpConfig>, @inject(MemoryLimits) memory: MemoryLimits) {
    this.#clock = clock;
    this.#memory = memory;
    this.configure(config);
  }

  configure({ bodyLimit, bodyTimeout }: HttpConfig): void {
    this.#limit = parseSize(bodyLimit);
    this.#timeout = parseDuration(bodyTimeout);
    this.#collector = undefined;
  }

  /**
   * @throws HttpError if the body is not of the kind (`json`: an object in UTF-8), or exceeds a
   * limit of size, time, memory, nesting or values.
   */
  async read(exchange: Exchange, kind: 'json' | 'bytes'): Promise<RequestBody> {
    const { ctx } = exchange;
    const { headers } = ctx.req;
    if (kind === 'json') checkType(headers['content-type']);
    else if (!ctx.is('*/*')) throw missingContentType();
    if ((headers['content-encoding'] ?? 'identity') !== 'identity') throw unsupportedEncoding();
    const length = Number(headers['content-length'] ?? 0);
    if (length > this.#limit) throw bodyTooLarge(this.#limit);
    const { bodies } = this.#memory;
    if (length * COST + PIECE_COST > bodies.share(OWNER_LEVELS)) throw bodyExceedsMemory(bodies.setting);
    const isBuffered = length > 0 && ctx.req.readableLength === length;
    const bytes = isBuffered ? this.#takeBuffered(ctx.req, exchange) : await this.#collect(ctx, exchange.reserveBody());
    return { bytes, value: kind === 'json' ? parseJsonObject(bytes.toString()) : bytes };
  }

  /** Takes a body of which every byte has arrived together with the head. Most have. */
  #takeBuffered(req: IncomingMessage, exchange: Exchange): Buffer {
    if (!exchange.reserveBody().grow(req.readableLength * COST)) throw tooManyBodies(this.#memory.bodies.setting);
    exchange.bodyIsRead = true;
    return req.read() as Buffer;
  }

  /** Collects the bytes of a body that still arrives. */
  async #collect(ctx: Context, memory: MemoryReservation): Promise<Buffer> {
    const { req, res, request } = ctx;
    if (/100-continue/i.test(req.headers.expect ?? '')) res.writeContinue();
    const counted = new CountedBody(req, memory);
    const timer = this.#clock.after(this.#timeout, () => counted.destroy(requestTimeout()));
    const onClose = () => counted.destroy(new Error('the caller disconnected'));
    res.once('close', onClose);
    try {
      this.#collector ??= bodyCollector(this.#limit);
      await this.#collector(Object.create(ctx, { req: { value: req.pipe(counted) } }), done);
      return (request.rawBody as Buffer | undefined) ?? NO_BYTES;
    } catch (error) {
      throw isTooLarge(error) ? bodyTooLarge(this.#limit) : error;
    } finally {
      timer.cancel();
      req.unpipe(counted);
      res.off('close', onClose);
    }
  }
}

/** The body of a request while it arrives. It fails when it exceeds the memory for bodies. */
class CountedBody extends Transform {
  /** Read by the collector. */
  readonly headers: IncomingMessage['headers'];
  readonly #memory: MemoryReservation;

  constructor({ headers }: IncomingMessage, memory: MemoryReservation) {
    super();
    this.headers = headers;
    this.#memory = memory;
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    if (this.#memory.grow(chunk.length * COST + PIECE_COST)) done(null, chunk);
    else done(tooManyBodies(this.#memory.setting));
  }
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && !(error instanceof HttpError) && 'status' in error && error.status === 413;
}

/**
 * Creates koa-bodyparser so that it collects bytes only: its own JSON mode accepts arrays,
 * inflates, and writes error responses. It is loaded with the first body that arrives in pieces,
 * because its form parser and its tables of media types take longer to load than Koa.
 */
function bodyCollector(limit: number): Middleware {
  const bodyParser = require('koa-bodyparser') as typeof import('koa-bodyparser');
  const options = {
    enableTypes: ['text'],
    extendTypes: { text: ['*/*'] },
    textLimit: String(limit),
    encoding: '', // keeps the bytes
  };
  return bodyParser(options);
}

async function done(): Promise<void> {}

/**
 * Accepts JSON only: browsers send forms and plain text cross-origin without a preflight (C-022).
 */
function checkType(header: string | undefined): void {
  if (header === 'application/json') return;
  const type = parseContentType(header ?? '');
  if (type?.mediaType !== 'application/json') throw unsupportedContentType();
  if (!type.charsets.every((charset) => charset === 'utf-8' || charset === 'utf8')) throw unsupportedCharset();
}

/**
 * Parses a JSON object that comes from a caller.
 *
 * @throws HttpError 400 if it is anything else, nested too deep, or has too many values.
 */
export function parseJsonObject(text: string): Readonly<Record<string, unknown>> {
  switch (exceededLimit(text, JSON_LIMITS)) {
    case 'depth':
      throw nestedTooDeep(JSON_LIMITS.depth);
    case 'values':
      throw tooManyValues(JSON_LIMITS.values);
    case 'keys':
      throw tooManyKeys(JSON_LIMITS.keys);
  }
  const value = parsed(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notJson();
  return value as Readonly<Record<string, unknown>>;
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw notJson();
  }
}
