import type { IncomingMessage } from 'node:http';
import { Account } from '@plugboard/kernel/contracts';
import { messageLimit, tooLarge } from '../protocol/message-in.js';
import { HttpFailure } from './http-failure.js';

/** Bytes that are read of the body of an error (S-75). */
const MAX_ERROR_BYTES = 64 * 1024;

/**
 * Reads the body of a response. A message takes 16 MiB at most: the whole body, or one event of a
 * stream. What is held of it is reserved first, and while there is no memory, nothing is read. The
 * body of an error is cut.
 *
 * @param maximum bytes of the largest message, in place of 16 MiB.
 * @throws HttpFailure if a message is larger, or the connection breaks.
 */
export async function* readBody(
  response: IncomingMessage,
  account: Account,
  signal: AbortSignal,
  maximum?: number,
): AsyncGenerator<Uint8Array> {
  const isError = (response.statusCode ?? 0) >= 400;
  const isStream = isEventStream(response.headers['content-type']);
  const limit = messageLimit(account, maximum);
  const leave = account.hold();
  let reserved = 0;
  let size = 0;
  let tail = '';
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (isError && size >= MAX_ERROR_BYTES) {
        yield chunk.subarray(0, chunk.length - (size - MAX_ERROR_BYTES));
        return;
      }
      if (isStream) {
        const text = tail + chunk.toString('latin1');
        const end = Math.max(text.lastIndexOf('\n\n'), text.lastIndexOf('\n\r\n'));
        if (end >= 0) size = text.length - end;
        tail = text.slice(-3);
      }
      if (size > limit) throw new HttpFailure('too_large', tooLarge(limit));
      const missing = Account.costOf(size) - reserved;
      if (missing < 0) account.release(-missing);
      else if (!account.reserve(missing)) await account.wait(missing, signal);
      reserved += missing;
      yield chunk;
    }
  } catch (error) {
    throw error instanceof HttpFailure ? error : new HttpFailure('broken', 'the connection broke', error);
  } finally {
    response.destroy();
    leave();
  }
}

/** @param type the value of `content-type`. */
export function isEventStream(type: string | null | undefined): boolean {
  return /^\s*text\/event-stream\s*(;|$)/i.test(type ?? '');
}
