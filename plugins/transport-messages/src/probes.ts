import type { HttpRoute } from '@plugboard/transport-http';
import { formatError, requestIdHeader } from './errors/format-error.js';
import { MessagesError } from './errors/messages-error.js';

/** What clients ask to see whether the server is there, before they have a token. */
export const PROBES: readonly HttpRoute[] = ['/', '/api/hello'].map((path) => ({
  method: 'HEAD',
  path,
  access: 'page',
  body: 'none',
  startsWork: false,
  formatError,
  handle: ({ requestId }) => ({ status: 200, headers: requestIdHeader(requestId) }),
}));

/** Parts of the protocol that this server lacks, such as batches: errors in its form. */
export const UNKNOWN: readonly HttpRoute[] = (['GET', 'POST', 'DELETE'] as const).map((method) => ({
  method,
  path: '/v1/messages/*rest',
  access: ['chat'],
  tokenHeader: 'x-api-key',
  body: 'none',
  startsWork: false,
  formatError,
  handle: ({ path }) => {
    throw new MessagesError(404, 'not_found_error', `Invalid URL (${method} ${path})`);
  },
}));
