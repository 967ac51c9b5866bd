import { createServer, type Server } from 'node:http';
import { parseDuration } from '@plugboard/kernel';
import type { HttpApplication } from '../application/application.js';
import type { HttpConfig } from '../config.js';
import type { ClientErrorHandler } from './client-error-handler.js';
import type { Connections } from './connections.js';
import { serializePipelining } from './serialize-pipelining.js';

/** Bytes of a request head. Equal to Node's default; explicit because it is documented. */
const MAX_HEAD_BYTES = 16 * 1024;

/** Creates Node's HTTP server with our limits, and our answers in place of Node's own. */
export function createNodeServer(
  config: HttpConfig,
  application: HttpApplication,
  connections: Connections,
  clientErrors: ClientErrorHandler,
): Server {
  const server = createServer({
    maxHeaderSize: MAX_HEAD_BYTES,
    requestTimeout: 0, // would include the time of the head; request-bodies.ts limits the time of the body
    connectionsCheckingInterval: 1_000, // the precision of the time limits above
    requireHostHeader: false, // Node would answer without a body; application.ts checks it
    shouldUpgradeCallback: (request) => application.isUpgrade(request),
  });
  setTimeouts(server, config);
  const serve = serializePipelining((req, res) => {
    if (!connections.isRefused(req.socket)) application.request(req, res);
  });
  server.on('connection', (socket) => connections.add(socket));
  server.on('request', serve);
  server.on('checkContinue', serve); // request-bodies.ts sends 100 when it reads the body
  server.on('checkExpectation', serve); // unknown expectations are ignored
  server.on('clientError', (error, socket) => clientErrors.onClientError(error, socket));
  server.on('upgrade', (req, socket, head) => application.upgrade(req, socket, head));
  server.on('connect', (req, socket) => clientErrors.onConnect(req.url ?? '', socket));
  return server;
}

/** Sets the time limits of connections. New ones, and those that become idle, have them. */
export function setTimeouts(server: Server, { headersTimeout, keepAlive }: HttpConfig): void {
  server.headersTimeout = parseDuration(headersTimeout);
  server.keepAliveTimeout = parseDuration(keepAlive);
}
