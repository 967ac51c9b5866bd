import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests that may wait on one connection. Clients of this protocol send none before they have their answer. */
const WAITING_LIMIT = 16;

/**
 * Lets pipelined requests of one connection be worked on one after the other, so that a connection has one turn running at most.
 * Node would hand them over all at once, and never tell those that wait that the caller has gone.
 */
export function inTurn(listener: RequestListener): RequestListener {
  const waiting = new WeakMap<Socket, number>();
  return (req: IncomingMessage, res: ServerResponse) => {
    if (res.socket) return listener(req, res);
    const { socket } = req;
    const ahead = waiting.get(socket) ?? 0;
    if (ahead === WAITING_LIMIT) return socket.destroy();
    waiting.set(socket, ahead + 1);
    res.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
      listener(req, res);
    });
  };
}
