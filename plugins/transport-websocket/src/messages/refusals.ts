import { type Account, failureOf } from '@plugboard/kernel/contracts';
import { turnFailureError, unavailable } from '@plugboard/openai-protocol';
import { HttpError, retryAfterHeaders } from '@plugboard/transport-http';

/** A limit of connections, streams or responses is reached: 429, with a retry after a second. */
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

/** The memory for messages is in use. */
export function overloaded(account: Account): HttpError {
  return turnFailureError(failureOf(account.shortage(), false), false);
}
