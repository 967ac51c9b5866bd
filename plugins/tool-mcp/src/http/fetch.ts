import { AsyncLocalStorage } from 'node:async_hooks';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Clock } from '@plugboard/kernel';
import type { Account } from '@plugboard/kernel/contracts';
import { HttpFailure } from './http-failure.js';
import { isEventStream, readBody } from './read-body.js';

/** Milliseconds for opening a connection. */
const CONNECT_LIMIT = 10_000;

/** What is learned of the response to one request. */
export interface Exchange {
  /** Whether the response is a stream, which ends later than the request to open it. */
  isStream: boolean;
  /** Why reading the response failed. */
  failure: HttpFailure | undefined;
}

/** The exchange that the SDK calls `fetch` for. */
export const currentExchange = new AsyncLocalStorage<Exchange>();

/** `fetch`, as the SDK calls it. */
export type Fetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

interface OpenOptions {
  readonly clock: Clock;
  /** Resolves names to addresses that may be connected to; by default any. */
  readonly lookup?: LookupFunction;
  /** The server was not reached. @param failure says why. */
  readonly onAway?: (failure: HttpFailure) => void;
}

interface FetchOptions extends OpenOptions {
  /** The address of the server, from the configuration file. */
  readonly url: URL;
  readonly newAccount: () => Account;
}

/**
 * `fetch` for one server. It connects to the origin of the configuration only, and follows no
 * redirect: what a server names is never contacted (S-07). Each connection serves one request, so
 * that none is lost on a connection that the server was about to close.
 */
export function fetchFor(options: FetchOptions): Fetch {
  return async (target, init = {}) => {
    const url = new URL(target);
    if (url.origin !== options.url.origin) throw new Error(`it leads to ${url.origin}, which is another server`);
    const exchange = currentExchange.getStore();
    const signal = init.signal ?? new AbortController().signal;
    signal.throwIfAborted();
    const response = await open(url, init, signal, options);
    if (exchange) exchange.isStream = isEventStream(response.headers['content-type']);
    return responseOf(response, watched(readBody(response, options.newAccount(), signal), exchange));
  };
}

/**
 * Sends one request on a connection of its own.
 * @throws HttpFailure, or the signal's reason.
 */
export async function open(url: URL, init: RequestInit, signal: AbortSignal, options: OpenOptions): Promise<IncomingMessage> {
  const { clock, lookup, onAway = () => {} } = options;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const body = typeof init.body === 'string' ? init.body : undefined;
  const isPlain = url.protocol === 'http:';
  const headers = { 'user-agent': 'plugboard', ...Object.fromEntries(new Headers(init.headers)) };
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  let isConnected = false;
  let isLate = false;
  const start = isPlain ? requestHttp : requestHttps;
  const request = start(url, {
    method: init.method ?? 'GET',
    headers: { ...headers, ...length },
    agent: false,
    signal,
    ...(lookup && { lookup }),
  });
  const timer = clock.after(CONNECT_LIMIT, () => {
    isLate = true;
    request.destroy();
  });
  request.once('socket', (socket) => {
    socket.once(isPlain ? 'connect' : 'secureConnect', () => {
      isConnected = true;
      timer.cancel();
    });
  });
  request.once('response', resolve);
  request.on('error', (error) => {
    timer.cancel();
    if (signal.aborted) return reject(signal.reason);
    if (isConnected) return reject(new HttpFailure('broken', 'the connection broke', error));
    const reason = isLate ? `no connection within ${CONNECT_LIMIT / 1000} s` : describe(error);
    const failure = new HttpFailure('away', `${url.origin} cannot be reached: ${reason}`, error);
    onAway(failure);
    reject(failure);
  });
  request.end(body);
  return promise;
}

/** What OpenSSL reports of a certificate whose authority is not known here. */
const UNTRUSTED: ReadonlySet<unknown> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

function describe(error: NodeJS.ErrnoException & { readonly errors?: readonly Error[] }): string {
  if (UNTRUSTED.has(error.code)) {
    const cure = 'start Plugboard with NODE_EXTRA_CA_CERTS set to the file of its authority (PEM)';
    const [reason] = error.message.split(';'); // a hint of Node.js follows
    return `its certificate is not trusted (${reason}): ${cure}`;
  }
  // Node.js reports several addresses that failed as one error without a message.
  return error.message === '' ? (error.errors?.[0]?.message ?? error.name) : error.message;
}

async function* watched(body: AsyncGenerator<Uint8Array>, exchange: Exchange | undefined): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    if (exchange && error instanceof HttpFailure) exchange.failure = error;
    throw error;
  }
}

function responseOf(response: IncomingMessage, body: AsyncGenerator<Uint8Array>): Response {
  const { statusCode: status = 500 } = response;
  const headers = headersOf(response);
  const hasBody = !WITHOUT_BODY.has(status);
  if (!hasBody) response.destroy();
  return new Response(hasBody ? ReadableStream.from(body) : null, { status, headers });
}

/** The statuses whose `Response` has no body. */
export const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

export function headersOf(response: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values] of Object.entries(response.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  return headers;
}
