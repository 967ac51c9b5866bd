import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock, PluginContext } from '@plugboard/kernel';
import { CONTEXT, inject } from '@plugboard/kernel/injection';
import type { ErrorReply } from '../errors/error-format.js';
import type { HttpError } from '../errors/http-error.js';
import { commonHeaders } from '../exchange/common-headers.js';
import { ErrorBodies } from '../exchange/error-bodies.js';
import { Exchanges } from '../exchange/exchanges.js';

/** Milliseconds that a refused caller has to read why. */
const REFUSAL_LIMIT = 1_000;

const JSON_TYPE = 'application/json; charset=utf-8';

/** Answers requests that begin no exchange with an error, and closes their connections. */
export class EarlyReplies {
  readonly #exchanges: Exchanges;
  readonly #errors: ErrorBodies;
  readonly #clock: Clock;

  constructor(
    @inject(CONTEXT) { clock }: PluginContext,
    @inject(Exchanges) exchanges: Exchanges,
    @inject(ErrorBodies) errors: ErrorBodies,
  ) {
    this.#exchanges = exchanges;
    this.#errors = errors;
    this.#clock = clock;
  }

  /**
   * Answers on a socket without a response of Node's.
   *
   * @param linger milliseconds for which the rest of a request may arrive; by default none.
   * @returns the id of the request.
   */
  toSocket(socket: Duplex, error: HttpError, linger?: number): string {
    const requestId = this.#exchanges.requestId();
    socket.end(rawResponse(this.#errors.format(error, requestId), requestId), () => {
      if (linger === undefined) socket.destroy();
    });
    const timer = this.#clock.after(linger ?? REFUSAL_LIMIT, () => socket.destroy());
    socket.once('close', () => timer.cancel());
    return requestId;
  }

  toResponse(res: ServerResponse, error: HttpError): void {
    const requestId = this.#exchanges.requestId();
    const { status, headers, body } = this.#errors.format(error, requestId);
    const own = { 'x-request-id': requestId, 'content-type': JSON_TYPE, connection: 'close' };
    res.writeHead(status, { ...own, ...headers }).end(JSON.stringify(body));
  }
}

function rawResponse({ status, headers, body: object }: Required<ErrorReply>, requestId: string): string {
  const body = JSON.stringify(object);
  const head = {
    ...commonHeaders(requestId),
    'content-type': JSON_TYPE,
    'content-length': Buffer.byteLength(body),
    connection: 'close',
    ...headers,
  };
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}
