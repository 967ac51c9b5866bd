import type { IncomingMessage } from 'node:http';
import { audit, type Clock, type Logger } from '@plugboard/kernel';
import { CLOCK, inject, injectable, LOGGER } from '@plugboard/kernel/injection';
import type { Exchange } from './exchange.js';
import { LogThrottle } from './log-throttle.js';

/** Nginx's status for a caller that disconnected. It appears in the log only. */
const CLIENT_CLOSED_REQUEST = 499;

/** Characters of a value from the request that are logged. */
const QUOTE_LIMIT = 512;

/**
 * Logs one line per request, and an audit event per 403. For unauthenticated callers it logs at most
 * one line per second and address, with the number of lines left out before it.
 */
@injectable()
export class AccessLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #throttle: LogThrottle;

  constructor(@inject(LOGGER) log: Logger, @inject(CLOCK) clock: Clock, @inject(LogThrottle) throttle: LogThrottle) {
    this.#log = log;
    this.#clock = clock;
    this.#throttle = throttle;
  }

  /** The number of suppressed lines. */
  get suppressed(): number {
    return this.#throttle.suppressed;
  }

  write(exchange: Exchange): void {
    if (!this.#log.isLevelEnabled('info')) return;
    const refusal = isUnauthenticated(exchange) ? this.#refusal(exchange.address) : {};
    if (!refusal) return;
    this.#log.info({ ...accessLine(exchange, this.#clock.monotonic()), ...refusal }, 'request');
    if (exchange.status === 403) audit(this.#log, 'forbidden', forbidden(exchange), 'a request was forbidden');
  }

  #refusal(address = ''): Readonly<Record<string, unknown>> | undefined {
    const suppressed = this.#throttle.admit(address);
    return suppressed === undefined ? undefined : { address, left_out: suppressed === 0 ? undefined : suppressed };
  }
}

/** Whether the request was refused before authentication succeeded. */
function isUnauthenticated({ principal, status }: Exchange): boolean {
  return principal === undefined && (status === 401 || status === 403);
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
    path: match ? undefined : path.slice(0, QUOTE_LIMIT),
    scope: logFields.scope,
    refused: logFields.refused,
    error_code: errorCode,
    address,
  };
}

/** The fields of an access log line, including those that the route added. */
function accessLine(exchange: Exchange, now: number): Readonly<Record<string, unknown>> {
  const { match, principal, headAt, logFields, acceptedAt } = exchange;
  const disconnected = exchange.outcome === 'cancelled_by_client';
  return {
    request_id: exchange.requestId,
    client_request_id: clientRequestId(exchange.req),
    method: exchange.method,
    route: match?.route.path,
    path: match ? undefined : exchange.path.slice(0, QUOTE_LIMIT),
    status: disconnected ? CLIENT_CLOSED_REQUEST : exchange.status,
    error_code: exchange.errorCode,
    duration_ms: rounded(now - acceptedAt),
    ttfb_ms: headAt === undefined ? undefined : rounded(headAt - acceptedAt),
    bytes_out: exchange.bytesOut,
    project: principal?.project,
    token_id: principal?.tokenId,
    token_name: principal?.token,
    ...logFields,
    outcome: exchange.outcome ?? logFields.outcome ?? outcomeOf(exchange.status, exchange.errorCode),
  };
}

export function outcomeOf(status: number, errorCode: string | undefined): string {
  if (errorCode === 'draining') return 'draining';
  if (status === 408) return 'timeout';
  if (status >= 500) return 'agent_error';
  return status >= 400 ? 'client_error' : 'ok';
}

/** The request id that the caller sent. */
function clientRequestId({ headers }: IncomingMessage): string | undefined {
  const id = headers['x-client-request-id'] ?? headers['x-request-id'];
  return typeof id === 'string' ? id.slice(0, QUOTE_LIMIT) : undefined;
}

/** Rounds milliseconds to hundredths. */
function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
