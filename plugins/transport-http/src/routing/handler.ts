import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { defineExtensionPoint } from '@plugboard/kernel';

/**
 * Handles requests that another HTTP server has accepted: Express, Fastify, Koa, or one of
 * `node:http`. It does everything that the server of `transport-http` does: Host and Origin,
 * credentials, limits, routes, WebSockets, and refusing new work while it stops.
 *
 * 1. The functions may be passed on as they are: `app.use(handler.request)`.
 * 2. `request` answers every request that it is given, with 404 where there is no such route. Its
 *    body must not have been read: mount it before body parsers.
 * 3. `upgrade` answers every request for an upgrade, as the listener of `upgrade`.
 * 4. Before the server has started, and after it has stopped, both answer with 503.
 */
export interface HttpHandler {
  readonly request: (req: IncomingMessage, res: ServerResponse) => void;
  readonly upgrade: (req: IncomingMessage, socket: Duplex, head: Buffer) => void;
}

/** The handler of the entry with `listen: false`: `server.extensions(HttpHandlers).one()`. */
export const HttpHandlers = defineExtensionPoint<HttpHandler>('transport-http.handler', {
  discipline: 'one',
  shape: { request: 'function', upgrade: 'function' },
});
