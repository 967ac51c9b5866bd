import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { defineExtensionPoint, type Principal } from '@plugboard/kernel';
import type { Account, Scope } from '@plugboard/kernel/contracts';
import type { ErrorFormatter } from '../errors/error-format.js';
import type { HttpRequest } from './routes.js';

/**
 * A path on which a WebSocket may be opened.
 *
 * 1. The request passes the same checks as any other: Host, Origin, credentials, scopes, rate
 *    limits. A refused request allocates nothing.
 * 2. transport-http calls `handle`, which either throws an `HttpError`, answered as to any request,
 *    or calls `accept` and owns the connection from then on.
 * 3. When the server stops, `draining` is aborted first: the connection should be closed once it
 *    does no work. `signal` is aborted when the drain time is over; a little later the connection
 *    is destroyed.
 *
 * A `GET` of the path that asks for no WebSocket is answered with 426.
 */
export interface HttpUpgrade {
  readonly path: string;
  /** The scopes that a credential needs, for example `['chat']`. */
  readonly access: readonly Scope[];
  /** Formats the errors that the server sends for the path: see `HttpRoute.formatError`. */
  readonly formatError?: ErrorFormatter;
  /**
   * How the WebSocket sub-protocol begins in which browsers send their token, because they cannot
   * set headers. Without it, only headers identify the caller.
   */
  readonly tokenProtocol?: string;
  handle(request: UpgradeRequest): Promise<void> | void;
}

export const HttpUpgrades = defineExtensionPoint<HttpUpgrade>('transport-http.upgrades', {
  discipline: 'in-order',
  describe: ({ path }) => [{ kind: 'route', label: 'GET', text: path }],
  unread: 'add http: {} under transports, which serves the paths',
});

export interface UpgradeRequest extends Omit<HttpRequest, 'params' | 'rawBody' | 'body' | 'dropBody' | 'account' | 'bodyLimit'> {
  /** The remote address. Behind a proxy it is the proxy's. */
  readonly address: string;
  /** Whether the server requires no credentials. */
  readonly open: boolean;
  /** Aborted when the server begins to stop. */
  readonly draining: AbortSignal;
  /** Hands the connection over. Once. */
  accept(): AcceptedUpgrade;
  /** Authenticates again: the connection may outlive its credential. @throws HttpError 401, 503. */
  authenticate(): Promise<Principal>;
  /** Opens the account of a message, for the request in it and its turn. */
  openAccount(): Account;
  /** Counts a message as a request against the limits of the caller. @throws HttpError 429. */
  countRequest(): void;
}

export interface AcceptedUpgrade {
  readonly request: IncomingMessage;
  readonly socket: Socket;
  /** What the client sent together with its request. */
  readonly head: Buffer;
}
