import type { IncomingMessage } from 'node:http';
import type { Exchange } from './exchange.js';

/** Nginx's word for a caller that left; it stands in the log only. */
const CLIENT_CLOSED_REQUEST = 499;

/** Characters of what a caller chose that a line repeats. */
const QUOTE_LIMIT = 512;

/** What the log says of an exchange that is over: one line, with the facts that the route noted. */
export function accessLine(exchange: Exchange, now: number): Readonly<Record<string, unknown>> {
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
    token_id: principal?.token,
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
