import { isIP } from 'node:net';
import type { Clock } from '@plugboard/kernel';
import { type Account, HostPolicy } from '@plugboard/kernel/contracts';
import { type Fetch, headersOf, open, WITHOUT_BODY } from '../http/fetch.js';
import { readBody } from '../http/read-body.js';
import { lateAnswer, refusedAddress } from './errors.js';

/** Bytes that are read of metadata, and of an answer to a token request (S-75). */
const MAX_BYTES = 2 ** 20;

interface AuthFetchOptions {
  /** The address of the MCP server, from the configuration file. */
  readonly url: URL;
  /** Which hosts may be private. */
  readonly hosts: HostPolicy;
  readonly clock: Clock;
  readonly newAccount: () => Account;
}

/**
 * `fetch` for what metadata name (S-07): public addresses, and private ones that the configuration
 * allows. The address that was checked is the one connected to. Secrets travel over TLS, except
 * within this machine; what the MCP server itself says may come as its own address does.
 *
 * @param limit aborted when the time is over. @param seconds the time, for the message.
 * @throws HttpFailure
 */
export function authFetch({ url: own, hosts, clock, newAccount }: AuthFetchOptions, limit: AbortSignal, seconds: number): Fetch {
  return async (target, init = {}) => {
    const url = new URL(target);
    const isOwn = url.origin === own.origin && (init.method ?? 'GET') === 'GET';
    if (url.protocol !== 'https:' && !isOwn && !(url.protocol === 'http:' && isLoopback(url)))
      throw refusedAddress(url, 'it must be https');
    const host = HostPolicy.hostOf(url);
    const policy = hosts.policyFor(url);
    if (isIP(host) !== 0 && !policy.allows(host))
      throw refusedAddress(url, 'its address is private; `allowPrivate` can allow it');
    const body = init.body instanceof URLSearchParams ? `${init.body}` : init.body;
    try {
      const response = await open(url, { ...init, body: body ?? null }, limit, { clock, lookup: policy.lookup });
      const pieces: Uint8Array[] = [];
      for await (const piece of readBody(response, newAccount(), limit, MAX_BYTES)) pieces.push(piece);
      const { statusCode: status = 500 } = response;
      return new Response(WITHOUT_BODY.has(status) ? null : Buffer.concat(pieces), { status, headers: headersOf(response) });
    } catch (error) {
      throw limit.aborted ? lateAnswer(url, seconds) : error;
    }
  };
}

function isLoopback({ hostname }: URL): boolean {
  return /^(localhost|.*\.localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname);
}
