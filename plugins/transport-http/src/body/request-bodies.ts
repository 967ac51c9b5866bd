import type { IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import { Transform, type TransformCallback } from 'node:stream';
import { type Clock, type PluginContext, parseDuration, parseSize } from '@plugboard/kernel';
import { Account, parseJson, SHAPE_LIMITS } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { Context, Middleware } from 'koa';
import type { HttpConfig } from '../config.js';
import { HttpError } from '../errors/http-error.js';
import {
  bodyExceedsMemory,
  bodyTooLarge,
  memoryInUse,
  missingContentType,
  nestedTooDeep,
  notJson,
  requestTimeout,
  tooManyKeys,
  tooManyValues,
  unsupportedCharset,
  unsupportedContentType,
  unsupportedEncoding,
} from '../errors/refusals.js';
import type { Exchange } from '../exchange/exchange.js';
import { measureJson } from './json-limits.js';
import { KnownTools, type Span } from './known-tools.js';

const require = createRequire(import.meta.url);

/** Bytes of memory that a value and a key of a body cost besides their text (S-53). */
const [VALUE_COST, KEY_COST] = [64, 32];

/** Bytes that a piece of an arriving body costs besides: a byte can be a chunk of its own. */
const PIECE_COST = 1024;

/** For requests that announce no body: the collector returns nothing then. */
const NO_BYTES = Buffer.alloc(0);

/** The body of a request. */
export interface RequestBody {
  readonly bytes: Buffer;
  /** The parsed object, or the bytes themselves. */
  readonly value: Readonly<Record<string, unknown>> | Buffer;
}

/**
 * Reads bodies. Checks, in this order: headers, length, memory, bytes. Then the caller's turn comes
 * (`Account.timeSlice`), and `parseBody` checks nesting and number of values, and JSON.
 */
export class RequestBodies {
  #limit = 0;
  #timeout = 0;
  readonly #clock: Clock;
  #collector: Middleware | undefined;

  constructor(@inject(CONTEXT) { config, clock }: PluginContext<HttpConfig>) {
    this.#clock = clock;
    this.configure(config);
  }

  /** The limit of a body, in bytes. */
  get limit(): number {
    return this.#limit;
  }

  configure({ bodyLimit, bodyTimeout }: HttpConfig): void {
    this.#limit = parseSize(bodyLimit);
    this.#timeout = parseDuration(bodyTimeout);
    this.#collector = undefined;
  }

  /**
   * Reads a body. Returns no promise if every byte has arrived with the head.
   *
   * @throws HttpError if the body has not the media type of the kind, or exceeds a limit of size,
   * time or memory.
   */
  read(exchange: Exchange, kind: 'json' | 'bytes'): Promise<Buffer> | Buffer {
    const { ctx } = exchange;
    const { headers } = ctx.req;
    if (ctx.req.readableDidRead) throw new Error(BODY_WAS_READ);
    if (kind === 'json') checkType(headers['content-type']);
    else if (!ctx.is('*/*')) throw missingContentType();
    if ((headers['content-encoding'] ?? 'identity') !== 'identity') throw unsupportedEncoding();
    const length = Number(headers['content-length'] ?? 0);
    if (length > this.#limit) throw bodyTooLarge(this.#limit);
    const { account } = exchange;
    if (Account.costOf(length) + PIECE_COST > account.limit) throw bodyExceedsMemory(account.setting);
    const isBuffered = length > 0 && ctx.req.readableLength === length;
    return isBuffered ? this.#takeBuffered(ctx.req, exchange) : this.#collect(ctx, account);
  }

  /** Takes a body of which every byte has arrived together with the head. Most have. */
  #takeBuffered(req: IncomingMessage, exchange: Exchange): Buffer {
    const { account } = exchange;
    if (!account.reserve(Account.costOf(req.readableLength))) throw memoryInUse(account);
    exchange.bodyIsRead = true;
    return req.read() as Buffer;
  }

  /** Collects the bytes of a body that still arrives. */
  async #collect(ctx: Context, account: Account): Promise<Buffer> {
    const { req, res, request } = ctx;
    if (/100-continue/i.test(req.headers.expect ?? '')) res.writeContinue();
    const counted = new CountedBody(req, account);
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
      counted.release();
      req.unpipe(counted);
      res.off('close', onClose);
    }
  }
}

const BODY_WAS_READ =
  'the body of a request was read before its route could: mount the handler of HttpHandlers before body parsers, and read no body in middleware';

/** The body of a request while it arrives. It fails when there is no memory for more of it. */
class CountedBody extends Transform {
  /** Read by the collector. */
  readonly headers: IncomingMessage['headers'];
  readonly #account: Account;
  #pieces = 0;

  constructor({ headers }: IncomingMessage, account: Account) {
    super();
    this.headers = headers;
    this.#account = account;
  }

  override _transform(chunk: Buffer, _encoding: string, done: TransformCallback): void {
    if (!this.#account.reserve(Account.costOf(chunk.length) + PIECE_COST)) {
      done(memoryInUse(this.#account));
      return;
    }
    this.#pieces++;
    done(null, chunk);
  }

  /** The pieces are joined, or the body is not read on. */
  release(): void {
    this.#account.release(this.#pieces * PIECE_COST);
    this.#pieces = 0;
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

/** Accepts JSON only: browsers send forms and text cross-origin without a preflight (C-022). */
function checkType(header: string | undefined): void {
  if (header === 'application/json') return;
  const type = parseContentType(header ?? '');
  if (type?.mediaType !== 'application/json') throw unsupportedContentType();
  if (!type.charsets.every((charset) => charset === 'utf-8' || charset === 'utf8')) throw unsupportedCharset();
}

/** @throws HttpError for a body of kind `json` that `parseJsonObject` refuses. */
export function parseBody(bytes: Buffer, kind: 'json' | 'bytes', account: Account): RequestBody {
  return { bytes, value: kind === 'bytes' ? bytes : parseJsonObject(bytes.toString(), account) };
}

/**
 * Parses a JSON object that comes from a caller.
 *
 * @param account reserves the memory of the values; that of the text is reserved already.
 * @throws HttpError 400 if it is anything else, nested too deep, or has too many values; 503
 *   without memory for it.
 */
export function parseJsonObject(text: string, account: Account): Readonly<Record<string, unknown>> {
  const { values, keys, exceeded, isPlain, tools } = measureJson(text, SHAPE_LIMITS);
  switch (exceeded) {
    case 'depth':
      throw nestedTooDeep(SHAPE_LIMITS.depth);
    case 'values':
      throw tooManyValues(SHAPE_LIMITS.values);
    case 'keys':
      throw tooManyKeys(SHAPE_LIMITS.keys);
  }
  if (!account.reserve(values * VALUE_COST + keys * KEY_COST)) throw memoryInUse(account);
  const value = parsed(text, isPlain, tools);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notJson();
  return value as Readonly<Record<string, unknown>>;
}

const knownTools = new KnownTools();

function parsed(text: string, isPlain: boolean, tools: Span | undefined): unknown {
  try {
    if (!isPlain) return parseJson(text);
    return tools === undefined ? JSON.parse(text) : knownTools.parse(text, tools);
  } catch {
    throw notJson();
  }
}

interface ContentType {
  /** Lower case, without parameters: `application/json`. */
  readonly mediaType: string;
  /** Lower case, all of them. */
  readonly charsets: readonly string[];
}

/** Parses a Content-Type (RFC 9110, 8.3.1). Undefined if a parameter has no value. */
function parseContentType(header: string): ContentType | undefined {
  const [mediaType = '', ...parameters] = header.split(';');
  const charsets: string[] = [];
  for (const parameter of parameters) {
    const [name = '', value] = parameter.trim().split('=');
    if (name === '') continue;
    if (value === undefined) return undefined;
    if (name.toLowerCase() === 'charset') charsets.push(unquoted(value).toLowerCase());
  }
  return { mediaType: mediaType.trim().toLowerCase(), charsets };
}

function unquoted(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}
