import type { ToolCall, ToolOutput } from '@plugboard/kernel';
import { HostPolicy } from '@plugboard/kernel/contracts';
import { HttpCallError, unreadable } from './errors/errors.js';
import { readBody } from './exchange/read-body.js';
import { resultOf } from './exchange/result.js';
import { type HttpRequest, send } from './exchange/send.js';
import type { LoadedOperation } from './load-operations.js';
import { type BuiltRequest, buildRequest } from './request/build-request.js';

/** What the calls of an entry share. */
export interface CallOptions {
  /** The operator's headers. Secret. */
  readonly headers: Readonly<Record<string, string>>;
  readonly addresses: HostPolicy;
  /** Bytes of a response that are read. */
  readonly responseLimit: number;
  /** Removes the operator's credentials from a text. */
  readonly redact: (text: string) => string;
}

/**
 * Calls an operation once.
 *
 * 1. The arguments become a request, which goes to the server of the operation and nowhere else.
 * 2. The operator's headers are added last, so no argument changes one.
 * 3. The answer is read up to `responseLimit`, and becomes text for the model.
 *
 * @throws HttpCallError with a message for the model, or the reason of the call's signal.
 */
export async function callOperation(
  { plan, server }: LoadedOperation,
  input: Readonly<Record<string, unknown>>,
  call: ToolCall,
  { headers, addresses, responseLimit, redact }: CallOptions,
): Promise<ToolOutput> {
  const isHarmless = plan.effect === 'read';
  const built = buildRequest(plan, input);
  const key: HttpRequest['headers'] = isHarmless ? {} : { 'idempotency-key': `${call.turnId}/${call.index}` };
  const request = requestTo(server, built, {
    ...DEFAULTS,
    ...lowerCase(call.headers),
    ...key,
    ...built.headers,
    ...lowerCase(headers),
  });
  const response = await send(request, addresses, isHarmless, call.signal);
  const { statusCode: status = 0 } = response;
  try {
    const body = await readBody(response, responseLimit);
    const { 'content-type': contentType, 'content-encoding': encoding, 'content-length': length } = response.headers;
    const contentLength = encoding === undefined && length !== undefined ? Number(length) : undefined;
    return redacted(resultOf({ status, contentType, contentLength, body, limit: responseLimit }), redact);
  } catch (error) {
    if (call.signal.aborted) throw call.signal.reason;
    if (status >= 400) throw new HttpCallError('http_broken', `HTTP ${status}, and the answer could not be read`, error);
    throw unreadable(HostPolicy.hostOf(server), isHarmless, error);
  }
}

const DEFAULTS = { accept: 'application/json, */*;q=0.5', 'user-agent': 'plugboard' } as const;

/** The path of the server comes before that of the operation, and its query before the call's. */
function requestTo(server: URL, { method, path, query, body }: BuiltRequest, headers: HttpRequest['headers']): HttpRequest {
  const queries = [server.search.slice(1), query].filter((text) => text !== '').join('&');
  const target = `${server.pathname.replace(/\/$/, '')}${path}${queries === '' ? '' : `?${queries}`}`;
  return { method, server, target, headers, body };
}

function lowerCase(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function redacted(output: ToolOutput, redact: (text: string) => string): ToolOutput {
  if (typeof output === 'string') return redact(output);
  const content = output.content.map((part) => (part.type === 'text' ? { ...part, text: redact(part.text) } : part));
  return { ...output, content };
}
