import type { IncomingMessage } from 'node:http';
import type { PluginContext } from '@plugboard/kernel';
import type { ResponseService } from '@plugboard/open-responses';
import { invalidRequest } from '@plugboard/openai-protocol';
import type { HttpUpgrade, UpgradeRequest } from '@plugboard/transport-http';
import { type WebSocket, WebSocketServer } from 'ws';
import type { WebSocketConfig } from '../config.js';
import { Connection } from '../connection/connection.js';
import { connectionOptions } from '../connection/connection-options.js';
import type { Connections } from './connections.js';

/** The sub-protocol that the server selects. A token among the offered ones is never sent back. */
const PROTOCOL = 'responses';

/**
 * Bounds what a client can make the parser hold back: fragments of one message, and pieces of one
 * frame.
 */
const MOST_FRAGMENTS = 128;
const MOST_CHUNKS = 1024;

/** Opens WebSockets on one path. */
export class LiveUpgrade implements HttpUpgrade {
  readonly path: string;
  readonly access = ['chat'] as const;
  readonly #connections: Connections;
  readonly #service: () => ResponseService;
  readonly #ctx: PluginContext<WebSocketConfig>;
  readonly #server: WebSocketServer;
  /** Lines for the heads of the answers. */
  readonly #headers = new WeakMap<IncomingMessage, readonly string[]>();

  constructor(path: string, connections: Connections, service: () => ResponseService, ctx: PluginContext<WebSocketConfig>) {
    this.path = path;
    this.#connections = connections;
    this.#service = service;
    this.#ctx = ctx;
    const options = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: connections.limits.maxFrameSize,
      maxFragments: MOST_FRAGMENTS,
      maxBufferedChunks: MOST_CHUNKS,
      handleProtocols: (offered: ReadonlySet<string>) => (offered.has(PROTOCOL) ? PROTOCOL : false),
    };
    this.#server = new WebSocketServer(options);
    this.#server.on('headers', (headers: string[], req: IncomingMessage) => headers.push(...(this.#headers.get(req) ?? [])));
  }

  /** @throws HttpError for what is wrong with the request. */
  handle(request: UpgradeRequest): void {
    const options = connectionOptions(request.path, request.query);
    checkHandshake(request);
    this.#connections.assertPlace(request);
    const { request: req, socket, head } = request.accept();
    this.#server.options.maxPayload = this.#connections.limits.maxFrameSize; // a reload may have changed it
    this.#headers.set(req, [`x-request-id: ${request.requestId}`]);
    this.#server.handleUpgrade(req, socket, head, (ws: WebSocket) => {
      const connection = new Connection(ws, socket, request, options, {
        limits: this.#connections.limits,
        service: this.#service,
        clock: this.#ctx.clock,
        ids: this.#ctx.ids,
        log: this.#ctx.log,
      });
      this.#connections.add(connection, request);
    });
  }
}

/**
 * Checks what the WebSocket library would refuse with its own messages. @throws ProtocolError 400
 */
function checkHandshake({ headers }: UpgradeRequest): void {
  if (headers['sec-websocket-version'] !== '13') {
    throw invalidRequest("Invalid 'Sec-WebSocket-Version': only version 13 is supported.", {
      code: 'invalid_value',
      headers: { 'sec-websocket-version': '13' },
    });
  }
  const key = headers['sec-websocket-key'];
  if (typeof key !== 'string' || !/^[+/0-9A-Za-z]{22}==$/.test(key)) {
    throw invalidRequest("Invalid 'Sec-WebSocket-Key': expected 16 bytes in base64.", { code: 'invalid_value' });
  }
  const protocols = headers['sec-websocket-protocol'];
  if (typeof protocols === 'string' && !areProtocols(protocols)) {
    throw invalidRequest("Invalid 'Sec-WebSocket-Protocol': expected different names, separated by commas.", {
      code: 'invalid_value',
    });
  }
}

function areProtocols(header: string): boolean {
  const names = header.split(',').map((name) => name.trim());
  return new Set(names).size === names.length && names.every((name) => /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name));
}
