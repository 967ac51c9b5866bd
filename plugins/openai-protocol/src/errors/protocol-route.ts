import { failureOf, TurnError } from '@plugboard/kernel/contracts';
import type { HttpRoute } from '@plugboard/transport-http';
import { formatError } from './format-error.js';
import { turnFailureError } from './turn-failure.js';

export interface ProtocolRouteOptions {
  /** The field of the request with the conversation. The default is `messages`. */
  readonly input?: string;
  /** Whether a failed request may be repeated. By default one that reads. */
  readonly isRepeatable?: boolean;
}

/** A route with errors in the words of the protocol, also for each `TurnError` that it throws. */
export function protocolRoute(
  route: Omit<HttpRoute, 'formatError'>,
  { input, isRepeatable = route.method === 'GET' }: ProtocolRouteOptions = {},
): HttpRoute {
  return {
    ...route,
    formatError,
    async handle(request) {
      try {
        return await route.handle(request);
      } catch (error) {
        throw asProtocolError(error, !isRepeatable, input);
      }
    },
  };
}

/** Converts a `TurnError`; returns every other error unchanged. See `turnFailureError`. */
export function asProtocolError(error: unknown, stateful: boolean, input?: string): unknown {
  return error instanceof TurnError ? turnFailureError(failureOf(error, false), stateful, input) : error;
}
