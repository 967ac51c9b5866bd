import { type Clock, ModelError } from '@plugboard/kernel';
import { errorText, errorTextOfBody } from './error-text.js';
import { isObject } from './json.js';
import type { Redactor } from './redactor.js';
import { retryAdvice } from './retry-advice.js';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** This side has stopped, while it had something open or before it was asked. */
const STOPPED: ReadonlySet<string> = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/** Every error of a connection. What each says is for callers: what happened, never where the model server is or with which key. */
export class Failures {
  readonly #redactor: Redactor;
  readonly #clock: Clock;
  readonly #limits: { readonly idleTimeout: string; readonly connectTimeout: string };

  constructor(redactor: Redactor, clock: Clock, limits: { readonly idleTimeout: string; readonly connectTimeout: string }) {
    this.#redactor = redactor;
    this.#clock = clock;
    this.#limits = limits;
  }

  /** The request was made or sent in vain, and no answer had begun. */
  unanswered(cause: Error): ModelError {
    const code = codeOf(cause);
    const [message, retryable] = this.#reason(code);
    return new ModelError(message, { retryable, cause });
  }

  #reason(code: string): readonly [message: string, retryable: boolean] {
    switch (code) {
      case 'ECONNREFUSED':
        return ['the model server refused the connection: nothing listens there.', true];
      case 'ENOTFOUND':
      case 'EAI_AGAIN':
        return [`the name of the model server could not be resolved (${code}).`, true];
      case 'UND_ERR_CONNECT_TIMEOUT':
      case 'ETIMEDOUT':
        return [`there was no connection to the model server within ${this.#limits.connectTimeout} (connectTimeout).`, true];
      case 'UND_ERR_SOCKET':
      case 'ECONNRESET':
      case 'EPIPE':
        return ['the model server closed the connection without an answer.', true];
      case 'UND_ERR_INVALID_ARG':
        return ['the request to the model server could not be made; the server log tells more.', false];
    }
    if (STOPPED.has(code)) return ['the connection was stopped before the model server had answered.', false];
    if (/^HPE_|^HTTPParserError$|HEADERS_OVERFLOW/.test(code))
      return [`the model server did not answer in proper HTTP (${code}).`, false];
    if (/CERT|SSL|TLS|EPROTO|SELF_SIGNED|VERIFY/.test(code))
      return [`there was no secure connection to the model server (${code}).`, true];
    return [`the model server could not be asked (${code}).`, true];
  }

  /** No byte for as long as `idleTimeout` (R-033). */
  silent(): ModelError {
    return new ModelError(`the model server sent nothing for ${this.#limits.idleTimeout} (idleTimeout).`, { retryable: false });
  }

  /** The socket was closed, or HTTP went wrong, in the middle of an answer. */
  brokenOff(cause: Error): ModelError {
    const code = codeOf(cause);
    if (STOPPED.has(code)) return this.unanswered(cause);
    return new ModelError(`the model server broke off in the middle of its answer (${code}).`, { retryable: true, cause });
  }

  /** The answer ended as HTTP does, but the model did not (R-034). */
  cutOff(): ModelError {
    return new ModelError('the answer was cut off: the model server ended it without a finish reason.', { retryable: true });
  }

  /** An event or a body is over the limit (R-036). */
  tooLarge(what: 'an event' | 'an answer', limit: number): ModelError {
    return new ModelError(`the model server sent ${what} of more than ${limit / 2 ** 20} MiB.`, { retryable: false });
  }

  /** What came is not what the protocol has there. @param what it is instead. */
  garbled(what: string, cause?: unknown): ModelError {
    return new ModelError(`the model server sent ${what}; does baseUrl lead to a chat-completions server?`, {
      retryable: false,
      cause,
    });
  }

  /** An error object where an answer should be. It may carry a status of its own, as if it had been one. */
  reported(error: unknown): ModelError {
    const text = this.#redactor.clean(errorText(error) ?? '');
    const status = isObject(error) ? Number(error.code ?? error.status) : Number.NaN;
    const retryable = Number.isNaN(status) ? isObject(error) && error.type === 'server_error' : isPassing(status);
    return new ModelError(`the model server reported an error${text === '' ? '.' : `: ${text}`}`, { retryable });
  }

  /** A status other than success. @param body as far as it was read. */
  status(status: number, headers: Headers, body: string): ModelError {
    const { retryable, retryAfter } = retryAdvice(headers, this.#clock.now());
    const text = this.#redactor.clean(errorTextOfBody(body) ?? '');
    const options = { retryable: retryable ?? isPassing(status), retryAfter };
    if (status === 401) {
      // Model servers quote what they can tell of the key: for the log, not for callers.
      const cause = text === '' ? undefined : new Error(text);
      return new ModelError('the model server did not accept the credentials (401): is apiKey right?', { ...options, cause });
    }
    const redirect = status < 400 ? ', a redirect: baseUrl must be where it leads' : '';
    const wait = retryAfter === undefined ? '' : ` and asks to wait ${Math.ceil(retryAfter / 1000)} s`;
    return new ModelError(`the model server answered ${status}${redirect}${wait}${text === '' ? '.' : `: ${text}`}`, options);
  }
}

/** Whether a status tells of something that may be over a little later. */
function isPassing(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
