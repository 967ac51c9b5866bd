import type { Principal } from '@plugboard/kernel';
import { type Account, OPEN, type Scope, type TurnError } from '@plugboard/kernel/contracts';
import { HttpError, retryAfterHeaders } from './http-error.js';

/** The same for every 401, whatever was wrong. Created once: anyone can cause many (R-101). */
const UNAUTHORIZED = new HttpError(401, 'The API token is invalid or missing. Send it as "Authorization: Bearer <API_TOKEN>".', {
  code: 'unauthorized',
  headers: { 'www-authenticate': 'Bearer' },
});

export function unauthorized(): HttpError {
  return UNAUTHORIZED;
}

/** @param retryAfter seconds: when memory is free again, or the server's successor runs. */
function unavailable(code: string, message: string, retryAfter = '5'): HttpError {
  return new HttpError(503, message, { code, headers: { 'retry-after': retryAfter } });
}

export function authUnavailable(): HttpError {
  return unavailable('auth_unavailable', 'The server cannot check API tokens right now. Try again later.');
}

export function outOfScope(missing: Scope, principal: Principal): HttpError {
  const why =
    principal === OPEN
      ? `This needs the scope \`${missing}\`, which callers of an open server do not have: configure a provider under \`auth\`.`
      : `This API token lacks the scope \`${missing}\`.`;
  return new HttpError(403, why, { code: 'insufficient_scope' });
}

export function draining(): HttpError {
  return unavailable('draining', 'The server is shutting down and accepts no new requests. Try again in a few seconds.');
}

export function notRunning(): HttpError {
  return unavailable('overloaded', 'The server is starting. Try again in a few seconds.', '1');
}

export function missingHost(): HttpError {
  return new HttpError(400, 'The request has no Host header, which HTTP/1.1 requires.');
}

export function malformedHost(): HttpError {
  return new HttpError(400, 'The Host header is malformed: it must be one host name, optionally with a port.');
}

export function hostNotAllowed(): HttpError {
  return new HttpError(
    403,
    'The host name in the Host header is not allowed. The operator can add it to the option `hosts` of the HTTP transport.',
    { code: 'host_not_allowed' },
  );
}

export function originNotAllowed(): HttpError {
  return new HttpError(
    403,
    'Requests from pages of this origin are not allowed. The operator can add it to the option `origins` of the HTTP transport.',
    { code: 'origin_not_allowed' },
  );
}

/** @param reason the runtime's error `rate_limited`. */
export function tooManyRequests({ message, options: { retryAfter = 1 } }: TurnError): HttpError {
  return new HttpError(429, message, { code: 'rate_limit_exceeded', headers: retryAfterHeaders(retryAfter * 1000) });
}

export function headersTooLarge(): HttpError {
  return new HttpError(431, 'The request has too many headers, or they are too large: at most 100, and 16 KiB together.', {
    code: 'headers_too_large',
  });
}

export function notFound(method: string, path: string): HttpError {
  return new HttpError(404, `Invalid URL (${method} ${path})`);
}

/** @param allowed all methods for the `Allow` header, including HEAD and OPTIONS. */
export function methodNotAllowed(allowed: readonly string[]): HttpError {
  const own = allowed.filter((method) => method !== 'HEAD' && method !== 'OPTIONS');
  return new HttpError(405, `Only ${own.join(' and ')} requests are accepted.`, {
    code: 'method_not_supported',
    headers: { allow: allowed.join(', ') },
  });
}

export function upgradeRequired(): HttpError {
  return new HttpError(426, 'This path is for WebSockets: send the headers `Connection: Upgrade` and `Upgrade: websocket`.', {
    code: 'upgrade_required',
    headers: { upgrade: 'websocket', connection: 'upgrade' },
  });
}

/** Query strings are logged by proxies and kept in histories. */
export function tokenInQuery(name: string, tokenProtocol: string | undefined): HttpError {
  const otherwise = tokenProtocol === undefined ? '' : `, or from a browser as the sub-protocol "${tokenProtocol}<API_TOKEN>"`;
  return new HttpError(
    400,
    `The query parameter '${name}' looks like an API token. Send it as "Authorization: Bearer <API_TOKEN>"${otherwise}.`,
    { code: 'token_in_query' },
  );
}

export function unsupportedContentType(): HttpError {
  return new HttpError(400, 'The request must have the header "Content-Type: application/json".');
}

export function missingContentType(): HttpError {
  return new HttpError(400, 'The request must have a body and the header "Content-Type".');
}

export function unsupportedCharset(): HttpError {
  return new HttpError(400, 'The request body must be UTF-8: omit "charset" from the Content-Type header, or set it to "utf-8".');
}

export function unsupportedEncoding(): HttpError {
  return new HttpError(400, 'Compressed request bodies are not supported: send the body without Content-Encoding.');
}

/** @param limit bytes. */
export function bodyTooLarge(limit: number): HttpError {
  return new HttpError(413, `The request body is larger than the limit of ${limit} bytes.`, {
    code: 'request_too_large',
  });
}

/** @param setting the option with the limit. */
export function bodyExceedsMemory(setting: string): HttpError {
  return new HttpError(413, `The request body does not fit into the memory that one caller may take (\`${setting}\`).`, {
    code: 'request_too_large',
  });
}

export function memoryInUse(account: Account): HttpError {
  return unavailable('overloaded', account.shortage().message);
}

/** @param setting the option with the limit. */
export function tooManyConnections(setting: string): HttpError {
  return unavailable('overloaded', `The server has too many open connections (\`${setting}\`). Try again in a few seconds.`);
}

export function lowMemory(): HttpError {
  return unavailable('overloaded', 'The server is low on memory (`--max-old-space-size`). Try again in a few seconds.');
}

export function requestTimeout(): HttpError {
  return new HttpError(408, 'The request did not arrive in time.', { code: 'request_timeout' });
}

/** The text begins like that of the reference protocol; clients match on it. */
export function notJson(): HttpError {
  return new HttpError(
    400,
    'We could not parse the JSON body of your request. (HINT: The body must be one JSON object in UTF-8, ' +
      'without compression; check what your HTTP library sends.)',
  );
}

export function nestedTooDeep(limit: number): HttpError {
  return new HttpError(
    400,
    `The JSON body of the request is nested too deeply: the limit is ${limit} levels of arrays and objects.`,
  );
}

export function tooManyValues(limit: number): HttpError {
  return new HttpError(400, `The JSON body of the request has too many values: the limit is ${limit}.`, {
    code: 'too_many_values',
  });
}

export function tooManyKeys(limit: number): HttpError {
  return new HttpError(400, `An object in the JSON body of the request has too many keys: the limit is ${limit}.`, {
    code: 'too_many_keys',
  });
}

/** @param reason the parser's message: a constant, nothing from the request. */
export function notHttp(reason: string | undefined): HttpError {
  return new HttpError(400, `The request is not valid HTTP${reason ? ` (${reason})` : ''}.`);
}

export function internalError(): HttpError {
  return new HttpError(500, 'The server had an error while processing your request. The server log has the details.', {
    code: 'internal_error',
  });
}
