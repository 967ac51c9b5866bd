import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { CLOCK, type Clock, inject, injectable, LOGGER, type Logger } from '@plugboard/kernel';
import type { HttpError } from '../errors/http-error.js';
import { headersTooLarge, notFound, notHttp, requestTimeout } from '../errors/refusals.js';
import { outcomeOf } from '../exchange/access-log.js';
import { Exchanges, isHangUp } from '../exchange/exchanges.js';
import { LINGER } from '../exchange/response-writer.js';

/** What `clientError` brings: a fault of the parser, a limit of Node's, or of the connection. */
export type WireFault = Error & { readonly code?: string; readonly reason?: string };

/**
 * Answers what never becomes a request. Node would do it without a body; callers of this protocol expect its error object in
 * every answer, and a request id that they find in the log.
 */
@injectable()
export class Unreadable {
  readonly #exchanges: Exchanges;
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor(@inject(Exchanges) exchanges: Exchanges, @inject(CLOCK) clock: Clock, @inject(LOGGER) log: Logger) {
    this.#exchanges = exchanges;
    this.#clock = clock;
    this.#log = log;
  }

  /** For `clientError`: a connection on which something cannot be read, or does not come in time. */
  onFault(fault: WireFault, socket: Duplex): void {
    const exchange = this.#exchanges.on(socket);
    if (isHangUp(fault)) {
      if (!exchange) this.#exchanges.lost(fault); // else Koa reports it
      socket.destroy();
    } else if (exchange) {
      exchange.break(refusalOf(fault));
    } else if (socket.writable) {
      this.#answer(refusalOf(fault), socket);
    }
  }

  /** For `connect`: this is no proxy. */
  onConnect(target: string, socket: Duplex): void {
    this.#answer(notFound('CONNECT', target), socket);
  }

  #answer(error: HttpError, socket: Duplex): void {
    const { status, code, headers } = error;
    const requestId = this.#exchanges.requestId();
    const text = this.#exchanges.errors.of(error);
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

function refusalOf({ code, reason }: WireFault): HttpError {
  if (code === 'HPE_HEADER_OVERFLOW') return headersTooLarge();
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return requestTimeout();
  return notHttp(reason);
}
