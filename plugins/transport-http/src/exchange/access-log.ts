import type { IncomingMessage } from 'node:http';
import { audit, type Clock, type Logger, type PluginContext } from '@plugboard/kernel';
import { OPEN } from '@plugboard/kernel/contracts';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { HttpError } from '../errors/http-error.js';
import { ANONYMOUS, networkOf } from '../limits/caller.js';
import type { Exchange } from './exchange.js';
import { LogThrottle } from './log-throttle.js';

/** Nginx's status for a caller that disconnected. It appears in the log only. */
const CLIENT_CLOSED_REQUEST = 499;

/** Characters of a value from the request that are logged. */
const MAX_QUOTE = 512;

/**
 * Logs one line per request, and an audit event per 403. For unauthenticated callers it logs at
 * most one line per second and address, with the number of lines left out before it.
 */
export class AccessLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #throttle: LogThrottle;

  constructor(@inject(CONTEXT) { log, clock }: PluginContext, @inject(LogThrottle) throttle: LogThrottle) {
    this.#log = log;
    this.#clock = clock;
    this.#throttle = throttle;
  }

  write(exchange: Exchange): void {
    const isCounted = isUnauthenticated(exchange);
    const source = isCounted ? this.#admit(exchange.address) : undefined;
    if (isCounted && !source) return;
    if (this.#log.isLevelEnabled('info')) {
      this.#log.info(Object.assign(accessLine(exchange, this.#clock.monotonic()), source), 'request');
    }
    if (exchange.status === 403) audit(this.#log, 'forbidden', forbidden(exchange), 'a request was forbidden');
  }

  /** Logs a request that Node could not parse. */
  writeMalformed(requestId: string, { status, code }: HttpError, address: string): void {
    const source = this.#admit(address);
    if (!source) return;
    const fields = { request_id: requestId, status, error_code: code, outcome: outcomeOfStatus(status, code) };
    this.#log.info({ ...fields, ...source }, 'request');
  }

  #admit(address: string): Readonly<Record<string, unknown>> | undefined {
    const suppressed = this.#throttle.admit(networkOf(address));
    return suppressed === undefined ? undefined : { address, left_out: suppressed === 0 ? undefined : suppressed };
  }
}

/**
 * Whether anybody could have sent the request, any number of times: it was refused before
 * authentication succeeded, its route is public and verified no credential itself, or, on an open
 * server, it has no route.
 */
function isUnauthenticated({ principal, match, logFields }: Exchange): boolean {
  if (principal === ANONYMOUS) return logFields.token_name === undefined;
  return principal === undefined || (principal === OPEN && match === undefined);
}

function forbidden({
  requestId,
  principal,
  match,
  path,
  errorCode,
  logFields,
  address,
}: Exchange): Readonly<Record<string, unknown>> {
  return {
    request_id: requestId,
    project: principal?.project,
    token_id: principal?.tokenId,
    token_name: principal?.token,
    route: match?.route.path,
    path: match ? undefined : path.slice(0, MAX_QUOTE),
    scope: logFields.scope,
    refused: logFields.refused,
    error_code: errorCode,
    address,
  };
}

/** The fields of an access log line, including those that the route added. */
function accessLine(exchange: Exchange, now: number): Record<string, unknown> {
  const { match, principal, headAt, logFields, acceptedAt } = exchange;
  const disconnected = exchange.outcome === 'cancelled_by_client';
  return {
    request_id: exchange.requestId,
    client_request_id: clientRequestId(exchange.req),
    method: exchange.method,
    route: match?.route.path,
    path: match ? undefined : exchange.path.slice(0, MAX_QUOTE),
    status: disconnected ? CLIENT_CLOSED_REQUEST : exchange.status,
    error_code: exchange.errorCode,
    duration_ms: rounded(now - acceptedAt),
    ttfb_ms: headAt === undefined ? undefined : rounded(headAt - acceptedAt),
    bytes_out: exchange.bytesOut,
    project: principal?.project,
    token_id: principal?.tokenId,
    token_name: principal?.token,
    ...logFields,
    outcome: outcomeOf(exchange),
  };
}

/** How a request ended, in one word. */
export function outcomeOf({ outcome, logFields, status, errorCode }: Exchange): string {
  return outcome ?? String(logFields.outcome ?? outcomeOfStatus(status, errorCode));
}

function outcomeOfStatus(status: number, errorCode: string | undefined): string {
  if (errorCode === 'draining') return 'draining';
  if (status === 408) return 'timeout';
  if (status >= 500) return 'agent_error';
  return status >= 400 ? 'client_error' : 'ok';
}

/** The request id that the caller sent. */
function clientRequestId({ headers }: IncomingMessage): string | undefined {
  const id = headers['x-client-request-id'] ?? headers['x-request-id'];
  return typeof id === 'string' ? id.slice(0, MAX_QUOTE) : undefined;
}

/** Rounds milliseconds to hundredths. */
function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
