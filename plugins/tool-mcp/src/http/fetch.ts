import { AsyncLocalStorage } from 'node:async_hooks';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
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

interface FetchOptions {
  /** The address of the server, from the configuration file. */
  readonly url: URL;
  readonly clock: Clock;
  readonly newAccount: () => Account;
  /** The server was not reached. @param failure says why. */
  readonly onAway: (failure: HttpFailure) => void;
}

/**
 * `fetch` for one server. It connects to the origin of the configuration only, and follows no
 * redirect: what a server names is never contacted (S-07). Each connection serves one request, so
 * that none is lost on a connection that the server was about to close.
 */
export function fetchFor(options: FetchOptions): (url: string | URL, init?: RequestInit) => Promise<Response> {
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

async function open(url: URL, init: RequestInit, signal: AbortSignal, options: FetchOptions): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const body = typeof init.body === 'string' ? init.body : undefined;
  const isPlain = url.protocol === 'http:';
  const headers = { 'user-agent': 'plugboard', ...Object.fromEntries(new Headers(init.headers)) };
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) };
  let isConnected = false;
  let isLate = false;
  const start = isPlain ? requestHttp : requestHttps;
  const request = start(url, { method: init.method ?? 'GET', headers: { ...headers, ...length }, agent: false, signal });
  const timer = options.clock.after(CONNECT_LIMIT, () => {
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
    options.onAway(failure);
    reject(failure);
  });
  request.end(body);
  return promise;
}

/** Node.js reports several addresses that failed as one error without a message. */
function describe(error: Error & { readonly errors?: readonly Error[] }): string {
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
  const headers = new Headers();
  for (const [name, values] of Object.entries(response.headersDistinct)) {
    for (const value of values ?? []) headers.append(name, value);
  }
  const hasBody = status !== 204 && status !== 205 && status !== 304;
  if (!hasBody) response.destroy();
  return new Response(hasBody ? ReadableStream.from(body) : null, { status, headers });
}
