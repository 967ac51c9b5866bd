import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { inject } from '@plugboard/kernel/injection';
import type { HttpError } from '../errors/http-error.js';
import { headersTooLarge, notFound, notHttp, requestTimeout } from '../errors/refusals.js';
import { AccessLog } from '../exchange/access-log.js';
import { LINGER } from '../exchange/closing-reply.js';
import { Exchanges, isDisconnect } from '../exchange/exchanges.js';
import { Replies } from '../exchange/replies.js';
import { EarlyReplies } from './early-replies.js';

/** The error of a `clientError` event: of parsing, of a limit of Node's, or of the socket. */
type ClientError = Error & { readonly code?: string; readonly reason?: string };

/**
 * Answers requests that Node cannot parse. Node would answer them without a body; clients of this
 * server expect an error object and a request id in every response.
 */
export class ClientErrorHandler {
  readonly #exchanges: Exchanges;
  readonly #replies: Replies;
  readonly #early: EarlyReplies;
  readonly #accessLog: AccessLog;

  constructor(
    @inject(Exchanges) exchanges: Exchanges,
    @inject(Replies) replies: Replies,
    @inject(EarlyReplies) early: EarlyReplies,
    @inject(AccessLog) accessLog: AccessLog,
  ) {
    this.#exchanges = exchanges;
    this.#replies = replies;
    this.#early = early;
    this.#accessLog = accessLog;
  }

  /** Handles `clientError`: the connection failed, or a request on it is malformed or late. */
  onClientError(error: ClientError, socket: Duplex): void {
    const exchange = this.#exchanges.find(socket);
    if (isDisconnect(error)) {
      socket.destroy();
    } else if (exchange) {
      this.#replies.abort(exchange, httpErrorOf(error));
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
    const requestId = this.#early.toSocket(socket, error, LINGER);
    const address = socket instanceof Socket ? socket.remoteAddress : undefined;
    this.#accessLog.writeMalformed(requestId, error, address ?? '');
  }
}

function httpErrorOf({ code, reason }: ClientError): HttpError {
  if (code === 'HPE_HEADER_OVERFLOW') return headersTooLarge();
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return requestTimeout();
  return notHttp(reason);
}
