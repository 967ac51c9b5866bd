import type { OutgoingHttpHeaders } from 'node:http';
import type { Context } from 'koa';
import type { HttpReply } from '../routing/routes.js';
import { commonHeaders } from './common-headers.js';
import type { Exchange } from './exchange.js';

/** A reply whose body is streamed. */
export type Streamed = HttpReply & { readonly body: AsyncIterable<string> };

/** The content type of JSON. */
export const JSON_TYPE = 'application/json; charset=utf-8';

/** Replies whose body is not sent. */
const WITHOUT_BODY = new Set([204, 205, 304]);

/**
 * The headers of a reply that no middleware sees.
 *
 * @param type the content type, unless the headers have one.
 */
export function headOf(requestId: string, headers: HttpReply['headers'], type?: string): OutgoingHttpHeaders {
  const head: OutgoingHttpHeaders = commonHeaders(requestId);
  if (type !== undefined) head['content-type'] = type;
  for (const name in headers) head[name.toLowerCase()] = headers[name];
  return head;
}

/** Puts status and headers on the context. */
export function setHead(
  { ctx, requestId, isWrapped }: Exchange,
  { status, headers }: Pick<HttpReply, 'status' | 'headers'>,
): void {
  ctx.response.status = status;
  if (!isWrapped) ctx.set(commonHeaders(requestId)); // before middleware, they are set already
  for (const name in headers) ctx.res.setHeader(name, headers[name] as string);
}

/** Whether a reply is complete and has a body. */
export function hasBody(reply: HttpReply): boolean {
  return reply.body !== undefined && !isStreamed(reply) && !WITHOUT_BODY.has(reply.status);
}

/** The body of a complete reply as it is sent. */
export function contentOf(body: HttpReply['body']): string | Buffer {
  if (body instanceof Uint8Array) return Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  return typeof body === 'object' ? JSON.stringify(body) : (body ?? '');
}

/**
 * Puts a complete body on the context.
 *
 * @param type the content type, unless the headers have one.
 */
export function setBody({ response, res }: Context, body: HttpReply['body'], type = typeOf(body)): void {
  if (type !== undefined && !res.hasHeader('content-type')) res.setHeader('content-type', type);
  const isEmpty = body === undefined && (response.status === 204 || response.status === 304);
  response.body = isEmpty ? null : contentOf(body);
  if (type === undefined) res.removeHeader('content-type');
}

/** The content type of a body, unless the headers have one. */
export function typeOf(body: HttpReply['body']): string | undefined {
  if (body === undefined) return undefined;
  if (typeof body === 'string') return 'text/plain; charset=utf-8';
  return body instanceof Uint8Array ? 'application/octet-stream' : JSON_TYPE;
}

export function isStreamed(reply: HttpReply): reply is Streamed {
  return typeof reply.body === 'object' && Symbol.asyncIterator in reply.body;
}
