import { STATUS_CODES } from 'node:http';
import type { ErrorReply } from '../errors/error-format.js';

/** An error response for a request that Node could not parse, as written to its socket. */
export function errorResponse({ status, headers, body: object }: Required<ErrorReply>, requestId: string): string {
  const body = JSON.stringify(object);
  const head = {
    'x-request-id': requestId,
    'x-content-type-options': 'nosniff',
    'cross-origin-resource-policy': 'same-origin',
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
    ...headers,
  };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}
