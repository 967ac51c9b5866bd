import type { Clock } from '@plugboard/kernel';
import type { Context } from 'koa';

/**
 * Milliseconds for which the rest of a refused body is read and discarded after the reply. Closing
 * a connection with unread bytes resets it, and the reset can overtake the reply (RFC 9112, 9.6).
 */
export const LINGER = 5_000;

/** Bytes of it that are read, and pieces: a chunk of one byte costs as much as a large one. */
const MAX_DISCARDED = 256 * 1024;
const MAX_PIECES = 1_000;

/** Whether part of the request body has not arrived yet. */
export function isArriving({ complete, headers }: Context['req']): boolean {
  return !complete && (headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0);
}

/**
 * Sends the complete reply of a context in place of Koa, and closes the connection once the rest of
 * the request has arrived. The `content-length` tells the caller where the reply ends.
 */
export function sendAndClose(ctx: Context, clock: Clock): void {
  const { req, res, body } = ctx;
  const { socket } = res;
  ctx.respond = false;
  ctx.set('connection', 'close');
  socket?.cork();
  res.flushHeaders();
  if (typeof body === 'string' || Buffer.isBuffer(body)) res.write(body);
  if (!isArriving(req)) {
    socket?.destroySoon();
    return;
  }
  socket?.end();
  req.once('end', () => socket?.destroy());
  discard(req);
  const linger = clock.after(LINGER, () => socket?.destroy());
  socket?.once('close', () => linger.cancel());
}

/**
 * Reads and discards what still arrives of a request, up to the limits. What follows stays in the
 * buffers of the operating system, while the caller can read the reply (S-59).
 */
function discard(req: Context['req']): void {
  const { socket } = req;
  let bytes = 0;
  let pieces = 0;
  const onPiece = (piece: Buffer) => {
    bytes += piece.length;
    pieces += 1;
    if (bytes <= MAX_DISCARDED && pieces <= MAX_PIECES) return;
    req.off('data', onPiece);
    req.resume(); // discards what the socket has read
    socket.on('resume', () => socket.pause()); // the request resumes its socket when it wants more
    socket.pause();
  };
  req.on('data', onPiece);
}
