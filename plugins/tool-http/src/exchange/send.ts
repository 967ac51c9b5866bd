import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP } from 'node:net';
import { HostPolicy } from '@plugboard/kernel/contracts';
import {
  brokenOff,
  failedRedirect,
  HttpCallError,
  noHttp,
  privateAddress,
  tooManyRedirects,
  unreachable,
} from '../errors/errors.js';

const MAX_REDIRECTS = 3;
/** What may follow a redirect to another origin: no credential, and nothing that the model set. */
const HARMLESS: ReadonlySet<string> = new Set(['accept', 'content-type', 'user-agent']);

/** A request, with everything that is sent. */
export interface HttpRequest {
  readonly method: string;
  /** The origin of the server. */
  readonly server: URL;
  /** Path and query, encoded. */
  readonly target: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

/**
 * Sends a request, and follows up to three redirects. Each address is checked, and the socket
 * connects to what was checked (OAS-8). A connection serves one request, so none is reused that was
 * checked for another.
 *
 * @param isHarmless whether the request has no effect, for the message of a connection that broke.
 * @returns the response, whose body the caller reads or destroys.
 * @throws HttpCallError, or the signal's reason.
 */
export async function send(
  request: HttpRequest,
  addresses: HostPolicy,
  isHarmless: boolean,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  let current = request;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    signal.throwIfAborted();
    try {
      const response = await open(current, addresses, isHarmless, signal);
      const { statusCode = 0, headers } = response;
      if (![301, 302, 303, 307, 308].includes(statusCode) || headers.location === undefined) return response;
      response.destroy();
      current = redirected(current, headers.location, statusCode);
    } catch (error) {
      if (redirects === 0 || isHarmless || !(error instanceof HttpCallError)) throw error;
      throw failedRedirect(HostPolicy.hostOf(request.server), error);
    }
  }
  throw tooManyRedirects(HostPolicy.hostOf(request.server), MAX_REDIRECTS);
}

function open(request: HttpRequest, addresses: HostPolicy, isHarmless: boolean, signal: AbortSignal): Promise<IncomingMessage> {
  const { method, server, target, headers, body } = request;
  const host = HostPolicy.hostOf(server);
  const policy = addresses.policyFor(server);
  // The lookup is not asked about an address.
  if (isIP(host) !== 0 && !policy.allows(host)) throw privateAddress(host);
  const start = server.protocol === 'http:' ? requestHttp : requestHttps;
  const length = body === undefined ? undefined : Buffer.byteLength(body);
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  let isConnected = false;
  const outgoing = start({
    method,
    host,
    port: server.port,
    path: target,
    headers: { ...headers, ...(length !== undefined && { 'content-length': length }) },
    agent: false,
    signal,
    lookup: policy.lookup,
  });
  outgoing.once('socket', (socket) => {
    socket.once(server.protocol === 'http:' ? 'connect' : 'secureConnect', () => {
      isConnected = true;
    });
  });
  outgoing.once('response', resolve);
  outgoing.on('error', (error) => {
    if (signal.aborted) reject(signal.reason);
    else if (isConnected) reject(brokenOff(host, isHarmless, error));
    else reject(error.message === PRIVATE ? privateAddress(host) : unreachable(host, error));
  });
  outgoing.end(body);
  return promise;
}

/** The message of `AddressPolicy.lookup`. */
const PRIVATE = 'its address is private';

/** The request that follows a redirect, as `fetch` makes it. */
function redirected(request: HttpRequest, location: string, status: number): HttpRequest {
  const url = URL.parse(location, new URL(request.target, request.server).href);
  if (!url)
    throw new HttpCallError('http_redirects', `${HostPolicy.hostOf(request.server)} redirects to a text that is not an address`);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw noHttp(url.protocol);
  const becomesGet = (status === 303 && request.method !== 'HEAD') || (status <= 302 && request.method === 'POST');
  const isSameOrigin = url.origin === request.server.origin;
  const kept = Object.entries(request.headers).filter(
    ([name]) => (isSameOrigin || HARMLESS.has(name)) && !(becomesGet && name === 'content-type'),
  );
  return {
    method: becomesGet ? 'GET' : request.method,
    server: new URL(url.origin),
    target: `${url.pathname}${url.search}`,
    headers: Object.fromEntries(kept),
    body: becomesGet ? undefined : request.body,
  };
}
