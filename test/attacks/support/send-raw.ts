import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import type { TestServer } from '../../support/test-server.js';
import { type Call, NO_BODY } from './every-route.js';

export type Pair = readonly [name: string, value: string];

/** A response without what differs from one request to the next. */
interface Response {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** What `GET /v1/status` says about the time since the start and the use of limits. */
const USE = /"uptime_seconds":\d+,|"limits":\[.*\]/gs;

/**
 * Sends a request with these headers as they stand, the same name twice among them, which `fetch`
 * would join.
 */
export function sendRaw(
  server: TestServer,
  { method, path, takesJson }: Pick<Call, 'method' | 'path' | 'takesJson'>,
  headers: readonly Pair[] = [],
  body = NO_BODY,
): Promise<Response> {
  const all: readonly Pair[] = [
    ['host', '127.0.0.1'],
    ...(takesJson
      ? [['content-type', 'application/json'] as const, ['content-length', `${Buffer.byteLength(body)}`] as const]
      : []),
    ...headers,
  ];
  return new Promise((resolve, reject) => {
    const asked = request(server.url + path, { method, headers: all.flat() }, async (response) => {
      const { 'x-request-id': id = '', 'request-id': _, date, ...rest } = response.headers;
      const body = (await text(response)).replaceAll(String(id), 'req_0');
      const steady = body.replaceAll(USE, '');
      if (steady !== body) delete rest['content-length'];
      resolve({ status: response.statusCode ?? 0, headers: rest, text: steady });
    });
    asked.on('error', reject);
    asked.end(takesJson ? body : undefined);
  });
}

type Decision = 'unknown' | 'forbidden' | 'let in';

/**
 * What was decided about a caller: not known (401), known and not allowed (403), or allowed,
 * whatever became of the request then.
 */
export function decisionOf({ status }: Response): Decision {
  if (status === 401) return 'unknown';
  return status === 403 ? 'forbidden' : 'let in';
}
