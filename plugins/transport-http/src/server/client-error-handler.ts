import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock, Logger } from '@plugboard/kernel';
import { CLOCK, inject, injectable, LOGGER } from '@plugboard/kernel/injection';
import type { HttpError } from '../errors/http-error.js';
import { headersTooLarge, notFound, notHttp, requestTimeout } from '../errors/refusals.js';
import { outcomeOf } from '../exchange/access-log.js';
import { Exchanges, isDisconnect } from '../exchange/exchanges.js';
import { LINGER } from '../exchange/response-writer.js';

/** The error of a `clientError` event: a parse error, an exceeded limit of Node's, or a failed connection. */
export type ClientError = Error & { readonly code?: string; readonly reason?: string };

/**
 * Answers requests that Node cannot parse. Node would answer them without a body; clients of this
 * server expect an error object and a request id in every response.
 */
@injectable()
export class ClientErrorHandler {
  readonly #exchanges: Exchanges;
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor(@inject(Exchanges) exchanges: Exchanges, @inject(CLOCK) clock: Clock, @inject(LOGGER) log: Logger) {
    this.#exchanges = exchanges;
    this.#clock = clock;
    this.#log = log;
  }

  /** Handles `clientError`: the connection failed, or a request on it is malformed or late. */
  onClientError(error: ClientError, socket: Duplex): void {
    const exchange = this.#exchanges.find(socket);
    if (isDisconnect(error)) {
      if (!exchange) this.#exchanges.onConnectionError(error); // else Koa reports it
      socket.destroy();
    } else if (exchange) {
      exchange.abort(httpErrorOf(error));
    } else if (socket.writable) {
      this.#answer(httpErrorOf(error), socket);
    }
  }

  /** Handles `connect`: the server is not a proxy, so the answer is 404. */
  onConnect(target: string, socket: Duplex): void {
    // Node hands the socket over without a listener: an error of it would end the process (S-33).
    socket.on('error', (error) => this.#exchanges.onConnectionError(error));
    this.#answer(notFound('CONNECT', target), socket);
  }

  #answer(error: HttpError, socket: Duplex): void {
    const { status, code, headers } = error;
    const requestId = this.#exchanges.requestId();
    const text = this.#exchanges.errors.format(error);
    const head = {
      'x-request-id': requestId,
      'x-content-type-options': 'nosniff',
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
      connection: 'close',
      ...headers,
    };
    const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${text}`);
    const linger = this.#clock.after(LINGER, () => socket.destroy());
    socket.once('close', () => linger.cancel());
    this.#log.info({ request_id: requestId, status, error_code: code, outcome: outcomeOf(status, code) }, 'request');
  }
}

function httpErrorOf({ code, reason }: ClientError): HttpError {
  if (code === 'HPE_HEADER_OVERFLOW') return headersTooLarge();
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return requestTimeout();
  return notHttp(reason);
}
