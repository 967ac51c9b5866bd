import { RawClient, type RawReply, replyOf } from '../../plugins/transport-http/test/support/raw-client.js';

/**
 * Sends these lines on a new connection, and returns the first complete reply.
 */
export async function rawExchange(port: number, ...lines: readonly string[]): Promise<RawReply> {
  const raw = await RawClient.open(port);
  try {
    raw.send(...lines);
    return await wholeReply(raw);
  } finally {
    raw.socket.destroy();
  }
}

/** The first reply, once all of it has come. It must say its length. */
export async function wholeReply(raw: RawClient): Promise<RawReply> {
  const { headers } = replyOf(await raw.until(/\r\n\r\n/));
  const length = Number(headers['content-length'] ?? 0);
  return replyOf(await raw.until(new RegExp(`\\r\\n\\r\\n[^]{${length}}`)));
}

/** A chat request as it goes over the wire. */
export function rawChat(body: object, ...headers: readonly string[]): readonly string[] {
  const text = JSON.stringify(body);
  return [
    'POST /v1/chat/completions HTTP/1.1',
    'Host: localhost',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(text)}`,
    ...headers,
    '',
    Buffer.from(text).toString('latin1'),
  ];
}
