import type { Scope } from '@plugboard/kernel';
import { HttpError, retryAfterHeaders } from './http-error.js';

/** Seconds after which a caller may ask again a server that stops: its successor should be there by then. */
const RETRY_AFTER_DRAINING = '5';

/** The one text of every 401 (service document, Errors), whatever was wrong with the credential. Made once, because whoever likes can have any number of them (R-101). */
const UNAUTHORIZED = new HttpError(401, 'The API token is invalid or missing. Send it as "Authorization: Bearer <API_TOKEN>".', {
  code: 'invalid_api_key',
  headers: { 'www-authenticate': 'Bearer' },
});

export function unauthorized(): HttpError {
  return UNAUTHORIZED;
}

export function authUnavailable(): HttpError {
  return new HttpError(503, 'The server cannot check API tokens right now. Try again later.', {
    code: 'auth_unavailable',
    headers: { 'retry-after': '5' },
  });
}

export function outOfScope(missing: Scope): HttpError {
  return new HttpError(403, `This API token lacks the scope \`${missing}\`.`, { code: 'insufficient_scope' });
}

export function draining(): HttpError {
  return new HttpError(503, 'The server is about to stop and takes no new work. Try again in a few seconds.', {
    code: 'draining',
    headers: { 'retry-after': RETRY_AFTER_DRAINING },
  });
}

export function missingHost(): HttpError {
  return new HttpError(400, 'The request has no Host header, which HTTP/1.1 requires.');
}

export function malformedHost(): HttpError {
  return new HttpError(400, 'The Host header of the request is not one name with perhaps a port.');
}

export function hostNotAllowed(): HttpError {
  return new HttpError(
    403,
    'This server does not answer under the name in the Host header of the request. Its operator can allow that name: `hosts`, beside `port` in the configuration.',
    { code: 'host_not_allowed' },
  );
}

export function originNotAllowed(): HttpError {
  return new HttpError(
    403,
    'This server does not answer pages of the site that the request comes from. Its operator can allow that site: `origins`, beside `port` in the configuration.',
    { code: 'origin_not_allowed' },
  );
}

/** @param wait milliseconds until there is room for one more. */
export function tooManyRequests(wait: number): HttpError {
  return new HttpError(429, 'This API token has sent as many requests as it may in a minute. Try again later.', {
    code: 'rate_limit_exceeded',
    headers: retryAfterHeaders(wait),
  });
}

export function headersTooLarge(): HttpError {
  return new HttpError(431, 'The request has too many headers, or they are too large: at most 100, and 16 KiB together.', {
    code: 'headers_too_large',
  });
}

export function notFound(method: string, path: string): HttpError {
  return new HttpError(404, `Invalid URL (${method} ${path})`);
}

/** @param allowed as the `Allow` header names them, HEAD and OPTIONS included. */
export function methodNotAllowed(allowed: readonly string[]): HttpError {
  const own = allowed.filter((method) => method !== 'HEAD' && method !== 'OPTIONS');
  return new HttpError(405, `Only ${own.join(' and ')} requests are accepted.`, {
    code: 'method_not_supported',
    headers: { allow: allowed.join(', ') },
  });
}

export function unsupportedContentType(): HttpError {
  return new HttpError(400, 'The request must have the header "Content-Type: application/json".');
}

export function unsupportedCharset(): HttpError {
  return new HttpError(
    400,
    'The request body must be UTF-8: leave "charset" out of the Content-Type header, or make it "utf-8".',
  );
}

export function unsupportedEncoding(): HttpError {
  return new HttpError(400, 'The request body must be sent as it is: this server takes no Content-Encoding.');
}

/** @param limit in bytes. */
export function bodyTooLarge(limit: number): HttpError {
  return new HttpError(413, `The request body is larger than the ${limit} bytes that this server takes.`, {
    code: 'request_too_large',
  });
}

export function requestTimeout(): HttpError {
  return new HttpError(408, 'The request did not arrive in time.', { code: 'request_timeout' });
}

/** The text begins as that of the reference protocol does: clients look for it. */
export function notJson(): HttpError {
  return new HttpError(
    400,
    'We could not parse the JSON body of your request. (HINT: The body must be one JSON object in UTF-8, sent as it is; ' +
      'check what your HTTP library makes of it.)',
  );
}

export function nestedTooDeep(limit: number): HttpError {
  return new HttpError(
    400,
    `The JSON body of the request is nested too deep: at most ${limit} levels of arrays and objects are taken.`,
  );
}

/** @param reason the parser's own words: constants, nothing of the request. */
export function notHttp(reason: string | undefined): HttpError {
  return new HttpError(400, `The request could not be read as HTTP${reason ? ` (${reason})` : ''}.`);
}

export function internalError(): HttpError {
  return new HttpError(500, 'The server had an error while it processed your request; its log tells more.', {
    code: 'internal_error',
  });
}
