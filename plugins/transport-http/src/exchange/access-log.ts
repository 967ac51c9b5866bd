import type { IncomingMessage } from 'node:http';
import { audit, CLOCK, type Clock, inject, injectable, LOGGER, type Logger } from '@plugboard/kernel';
import type { Exchange } from './exchange.js';
import { LineLimit } from './log-throttle.js';

/** Nginx's word for a caller that left; it stands in the log only. */
const CLIENT_CLOSED_REQUEST = 499;

/** Characters of what a caller chose that a line repeats. */
const QUOTE_LIMIT = 512;

/**
 * Tells the log of every exchange that is over, in one line; and the audit log of what was forbidden. Of callers that were refused before anybody
 * knew who they are there is one line a second for each address, which says how many were left out before it.
 */
@injectable()
export class AccessLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #strangers: LineLimit;

  constructor(@inject(LOGGER) log: Logger, @inject(CLOCK) clock: Clock, @inject(LineLimit) strangers: LineLimit) {
    this.#log = log;
    this.#clock = clock;
    this.#strangers = strangers;
  }

  /** Requests that have no line. */
  get leftOut(): number {
    return this.#strangers.leftOut;
  }

  write(exchange: Exchange): void {
    if (!this.#log.isLevelEnabled('info')) return;
    const refusal = isStranger(exchange) ? this.#refusal(exchange.address) : {};
    if (!refusal) return;
    this.#log.info({ ...accessLine(exchange, this.#clock.monotonic()), ...refusal }, 'request');
    if (exchange.status === 403) audit(this.#log, 'forbidden', forbidden(exchange), 'a request was forbidden');
  }

  #refusal(address = ''): Readonly<Record<string, unknown>> | undefined {
    const leftOut = this.#strangers.admit(address);
    return leftOut === undefined ? undefined : { address, left_out: leftOut === 0 ? undefined : leftOut };
  }
}

/** Whether the caller was refused without a credential that says who it is. */
function isStranger({ principal, status }: Exchange): boolean {
  return principal === undefined && (status === 401 || status === 403);
}

function forbidden({
  requestId,
  principal,
  match,
  path,
  errorCode,
  facts,
  address,
}: Exchange): Readonly<Record<string, unknown>> {
  return {
    request_id: requestId,
    project: principal?.project,
    token_id: principal?.tokenId,
    token_name: principal?.token,
    route: match?.route.path,
    path: match ? undefined : path.slice(0, QUOTE_LIMIT),
    scope: facts.scope,
    refused: facts.refused,
    error_code: errorCode,
    address,
  };
}

/** What the log says of an exchange that is over, with the facts that the route noted. */
function accessLine(exchange: Exchange, now: number): Readonly<Record<string, unknown>> {
  const { match, principal, headAt, facts, acceptedAt } = exchange;
  const gone = exchange.ending === 'cancelled_by_client';
  return {
    request_id: exchange.requestId,
    client_request_id: clientRequestId(exchange.req),
    method: exchange.method,
    route: match?.route.path,
    path: match ? undefined : exchange.path.slice(0, QUOTE_LIMIT),
    status: gone ? CLIENT_CLOSED_REQUEST : exchange.status,
    error_code: exchange.errorCode,
    duration_ms: rounded(now - acceptedAt),
    ttfb_ms: headAt === undefined ? undefined : rounded(headAt - acceptedAt),
    bytes_out: exchange.bytesOut,
    project: principal?.project,
    token_id: principal?.tokenId,
    token_name: principal?.token,
    ...facts,
    outcome: exchange.ending ?? facts.outcome ?? outcomeOf(exchange.status, exchange.errorCode),
  };
}

export function outcomeOf(status: number, errorCode: string | undefined): string {
  if (errorCode === 'draining') return 'draining';
  if (status === 408) return 'timeout';
  if (status >= 500) return 'agent_error';
  return status >= 400 ? 'client_error' : 'ok';
}

/** What the caller itself calls the request. */
function clientRequestId({ headers }: IncomingMessage): string | undefined {
  const id = headers['x-client-request-id'] ?? headers['x-request-id'];
  return typeof id === 'string' ? id.slice(0, QUOTE_LIMIT) : undefined;
}

/** Milliseconds, to the hundredth: what is finer is noise. */
function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
