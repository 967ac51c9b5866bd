import { createServer, type RequestListener, type Server } from 'node:http';
import { parseDuration } from '@plugboard/kernel';
import type { HttpConfig } from '../config.js';
import type { Unreadable } from './client-error-handler.js';
import { inTurn } from './serialize-pipelining.js';

/** Bytes of a request's head. Node's own default, written down because reliability.md 7.2 promises it. */
const HEAD_LIMIT = 16 * 1024;

/** Node's HTTP server with our limits, and with nothing left that it would answer by itself. */
export function createNodeServer(config: HttpConfig, listener: RequestListener, unreadable: Unreadable): Server {
  const server = createServer({
    maxHeaderSize: HEAD_LIMIT,
    headersTimeout: parseDuration(config.headersTimeout),
    requestTimeout: 0, // would count the head's time to the body's; json-body.ts has the limit
    keepAliveTimeout: parseDuration(config.keepAlive),
    connectionsCheckingInterval: 1_000, // how late a limit may be noticed
    requireHostHeader: false, // would be answered without a body; application.ts requires it
  });
  const serve = inTurn(listener);
  server.on('request', serve);
  server.on('checkContinue', serve); // json-body.ts says 100 once it wants the body
  server.on('checkExpectation', serve); // an expectation that we do not know is no reason to refuse
  server.on('clientError', (error, socket) => unreadable.onFault(error, socket));
  server.on('connect', (req, socket) => unreadable.onConnect(req.url ?? '', socket));
  return server;
}
