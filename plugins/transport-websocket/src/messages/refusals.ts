import { invalidRequest, type ProtocolError, unavailable } from '@plugboard/openai-protocol';
import { HttpError, retryAfterHeaders } from '@plugboard/transport-http';

/** A limit of connections, lanes or responses is reached: 429, worth a retry after a second. */
export function limited(code: string, message: string): HttpError {
  return new HttpError(429, message, {
    code,
    headers: retryAfterHeaders(1_000),
    body: { error: { message, type: 'requests', param: null, code } },
  });
}

/** The connection has reached `maxAge`. */
export function tooOld(): HttpError {
  return limited(
    'websocket_connection_limit_reached',
    'This connection has reached its maximum age. Open a new one to continue.',
  );
}

/** The server is stopping. */
export function draining(): HttpError {
  return unavailable('draining', 'The server is stopping and accepts no new requests. Connect again in a few seconds.', {
    'retry-after': '5',
  });
}

/** The memory for messages is in use. @param setting the option that limits it. */
export function overloaded(setting: string): HttpError {
  const message = `The memory for request bodies is in use (\`${setting}\`). Try again in a few seconds, or send smaller messages.`;
  return unavailable('overloaded', message, { 'retry-after': '1' });
}

/** The response to resume does not exist. */
export function responseNotFound(id: string): ProtocolError {
  return invalidRequest(`Response with id '${shown(id)}' not found.`, {
    status: 404,
    param: 'response_id',
    code: 'response_not_found',
  });
}

/** The events to resume from have been dropped. */
export function eventsExpired(id: string): ProtocolError {
  const message = `The events of response '${shown(id)}' are no longer kept. Get the response itself: GET /v1/responses/${shown(id)}.`;
  return invalidRequest(message, { status: 410, param: 'starting_after', code: 'response_events_expired' });
}

/**
 * The client claims to have seen an event that does not exist yet. @param last the number of the
 * newest event.
 */
export function eventAhead(after: number, last: number): ProtocolError {
  const message = `Invalid 'starting_after': the response has no event ${after} yet; its last one is ${last}.`;
  return invalidRequest(message, { param: 'starting_after', code: 'invalid_value' });
}

function shown(id: string): string {
  return id.slice(0, 64).toWellFormed();
}
