import type { IncomingMessage } from 'node:http';
import type { Extensions, PluginContext } from '@plugboard/kernel';
import type { ResponseService } from '@plugboard/open-responses';
import { formatError, invalidRequest } from '@plugboard/openai-protocol';
import type { HttpUpgrade, UpgradeRequest } from '@plugboard/transport-http';
import { type WebSocket, WebSocketServer } from 'ws';
import type { WebSocketConfig } from '../config.js';
import { parseQuery } from '../connection/connection-query.js';
import { LiveConnection } from '../connection/live-connection.js';
import type { LiveConnections } from './live-connections.js';

/** The sub-protocol that the server selects. A token among the offered ones is never sent back. */
const PROTOCOL = 'responses';

/** Fragments of one message. With `MAX_CHUNKS`, bounds what the parser holds of a client. */
const MAX_FRAGMENTS = 128;
/** Pieces in which one frame arrives. */
const MAX_CHUNKS = 1024;

/** Opens WebSockets on one path. */
export class LiveUpgrade implements HttpUpgrade {
  readonly path: string;
  readonly access = ['chat'] as const;
  readonly formatError = formatError;
  /** The convention of the OpenAI Realtime API. */
  readonly tokenProtocol = 'openai-insecure-api-key.';
  readonly #connections: LiveConnections;
  readonly #services: Extensions<ResponseService>;
  readonly #ctx: PluginContext<WebSocketConfig>;
  readonly #server: WebSocketServer;
  /** The headers of each answer. */
  readonly #headers = new WeakMap<IncomingMessage, readonly string[]>();

  constructor(
    path: string,
    connections: LiveConnections,
    services: Extensions<ResponseService>,
    ctx: PluginContext<WebSocketConfig>,
  ) {
    this.path = path;
    this.#connections = connections;
    this.#services = services;
    this.#ctx = ctx;
    const options = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      maxPayload: connections.limits.maxFrameSize,
      maxFragments: MAX_FRAGMENTS,
      maxBufferedChunks: MAX_CHUNKS,
      handleProtocols: (offered: ReadonlySet<string>) => (offered.has(PROTOCOL) ? PROTOCOL : false),
    };
    this.#server = new WebSocketServer(options);
    this.#server.on('headers', (headers: string[], req: IncomingMessage) => headers.push(...(this.#headers.get(req) ?? [])));
  }

  /** @throws HttpError for what is wrong with the request. */
  handle(request: UpgradeRequest): void {
    const query = parseQuery(request.path, request.query);
    checkHandshake(request);
    this.#connections.assertCapacity(request);
    const { request: req, socket, head } = request.accept();
    this.#server.options.maxPayload = this.#connections.limits.maxFrameSize; // a reload may have changed it
    this.#headers.set(req, [`x-request-id: ${request.requestId}`]);
    this.#server.handleUpgrade(req, socket, head, (ws: WebSocket) => {
      const connection = new LiveConnection(ws, socket, request, query, {
        limits: this.#connections.limits,
        service: this.#services.one(),
        transport: this.#ctx.name,
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
