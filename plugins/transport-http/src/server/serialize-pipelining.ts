import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Pipelined requests that may wait on one connection. Real clients send none. */
const MAX_WAITING = 16;

/**
 * Runs the pipelined requests of a connection one after the other, so that a connection has at most
 * one running turn. Node would start them all at once, and would not report a disconnect to those
 * that wait for their response socket.
 */
export function serializePipelining(listener: RequestListener): RequestListener {
  const waiting = new WeakMap<Socket, number>();
  return (req: IncomingMessage, res: ServerResponse) => {
    if (res.socket) return listener(req, res);
    const { socket } = req;
    const ahead = waiting.get(socket) ?? 0;
    if (ahead === MAX_WAITING) return socket.destroy();
    waiting.set(socket, ahead + 1);
    res.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
      listener(req, res);
    });
  };
}
