import type { ErrorReply, HttpError } from '@plugboard/transport-http';
import { type ErrorType, MessagesError } from './messages-error.js';

/** The header with the id of the request, where clients of the protocol look for it. */
export function requestIdHeader(requestId: string): Readonly<Record<string, string>> {
  return { 'request-id': requestId };
}

/** Formats the error of a route of the protocol (CL-24). */
export function formatError(error: HttpError, requestId: string): ErrorReply {
  const type = error instanceof MessagesError ? error.type : typeOf(error.status);
  return {
    status: type === 'overloaded_error' ? 529 : error.status,
    headers: { ...requestIdHeader(requestId), ...(isFinal(error.status) && { 'x-should-retry': 'false' }) },
    body: errorBody(type, error, requestId),
  };
}

/** Whether a retry gets the same error. Claude Code repeats a 401 unless it is told not to. */
function isFinal(status: number): boolean {
  return status >= 400 && status < 500 && ![408, 409, 429].includes(status);
}

/** The error object of the protocol. @param retryAfter seconds, for an event of a stream. */
export function errorBody(
  type: ErrorType,
  { message, code }: Pick<HttpError, 'message' | 'code'>,
  requestId: string,
  retryAfter?: number,
): object {
  const details = {
    ...(code !== undefined && { error_code: code }),
    ...(retryAfter !== undefined && { retry_after: retryAfter }),
  };
  const hasDetails = Object.keys(details).length > 0;
  return { type: 'error', error: { type, message, ...(hasDetails && { details }) }, request_id: requestId };
}

/** The type of an error of transport-http. */
function typeOf(status: number): ErrorType {
  switch (status) {
    case 401:
      return 'authentication_error';
    case 403:
      return 'permission_error';
    case 404:
      return 'not_found_error';
    case 413:
      return 'request_too_large';
    case 429:
      return 'rate_limit_error';
    case 503:
      return 'overloaded_error';
    default:
      return status >= 500 ? 'api_error' : 'invalid_request_error';
  }
}
