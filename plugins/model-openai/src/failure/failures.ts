import { type Clock, ModelError } from '@plugboard/kernel';
import { isObject } from '../json/json.js';
import { errorText, errorTextOfBody } from './error-text.js';
import type { Redactor } from './redactor.js';
import { retryAdvice } from './retry-advice.js';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** undici's codes for a pool that this side has closed. */
const STOPPED: ReadonlySet<string> = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/** Makes every error of a connection. Messages are shown to callers: they contain no address and no key. */
export class Failures {
  readonly #redactor: Redactor;
  readonly #clock: Clock;
  readonly #limits: { readonly idleTimeout: string; readonly connectTimeout: string };

  constructor(redactor: Redactor, clock: Clock, limits: { readonly idleTimeout: string; readonly connectTimeout: string }) {
    this.#redactor = redactor;
    this.#clock = clock;
    this.#limits = limits;
  }

  /** The request failed before a response arrived. */
  noResponse(cause: Error): ModelError {
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
        return [`connecting to the model server took longer than ${this.#limits.connectTimeout} (connectTimeout).`, true];
      case 'UND_ERR_SOCKET':
      case 'ECONNRESET':
      case 'EPIPE':
        return ['the model server closed the connection without an answer.', true];
      case 'UND_ERR_INVALID_ARG':
        return ['the request to the model server is invalid; the server log has the details.', false];
    }
    if (STOPPED.has(code)) return ['the connection was stopped before the model server had answered.', false];
    if (/^HPE_|^HTTPParserError$|HEADERS_OVERFLOW/.test(code)) return [`the model server sent invalid HTTP (${code}).`, false];
    if (/CERT|SSL|TLS|EPROTO|SELF_SIGNED|VERIFY/.test(code))
      return [`no secure connection to the model server was possible (${code}).`, true];
    return [`the request to the model server failed (${code}).`, true];
  }

  /** No byte arrived for `idleTimeout` (R-033). */
  idle(): ModelError {
    return new ModelError(`the model server sent nothing for ${this.#limits.idleTimeout} (idleTimeout).`, { retryable: false });
  }

  /** The socket was closed, or HTTP was invalid, in the middle of an answer. */
  interrupted(cause: Error): ModelError {
    const code = codeOf(cause);
    if (STOPPED.has(code)) return this.noResponse(cause);
    return new ModelError(`the model server broke off in the middle of its answer (${code}).`, { retryable: true, cause });
  }

  /** The body ended properly, but the model had not finished (R-034). */
  truncated(): ModelError {
    return new ModelError('the answer was cut off: the model server ended it without a finish reason.', { retryable: true });
  }

  /** An event or a body exceeds its limit (R-036). */
  tooLarge(what: 'an event' | 'an answer', limit: number): ModelError {
    return new ModelError(`the model server sent ${what} of more than ${limit / 2 ** 20} MiB.`, { retryable: false });
  }

  /** The response does not follow the protocol. @param what was sent instead. */
  unreadable(what: string, cause?: unknown): ModelError {
    return new ModelError(`the model server sent ${what}; does baseUrl lead to a chat-completions server?`, {
      retryable: false,
      cause,
    });
  }

  /** An error object in place of an answer. It may contain a status code of its own. */
  reported(error: unknown): ModelError {
    const text = this.#redactor.clean(errorText(error) ?? '');
    const status = isObject(error) ? Number(error.code ?? error.status) : Number.NaN;
    const retryable = Number.isNaN(status) ? isObject(error) && error.type === 'server_error' : isTransient(status);
    return new ModelError(`the model server reported an error${text === '' ? '.' : `: ${text}`}`, { retryable });
  }

  /** A status other than success. @param body as far as it was read. */
  status(status: number, headers: Headers, body: string): ModelError {
    const { retryable, retryAfter } = retryAdvice(headers, this.#clock.now());
    const text = this.#redactor.clean(errorTextOfBody(body) ?? '');
    const options = { retryable: retryable ?? isTransient(status), retryAfter };
    if (status === 401) {
      // Model servers repeat parts of the key here: for the log, not for callers.
      const cause = text === '' ? undefined : new Error(text);
      return new ModelError('the model server did not accept the credentials (401): is apiKey right?', { ...options, cause });
    }
    const redirect = status < 400 ? ', a redirect: set baseUrl to its target' : '';
    const wait = retryAfter === undefined ? '' : ` and asks to wait ${Math.ceil(retryAfter / 1000)} s`;
    return new ModelError(`the model server answered ${status}${redirect}${wait}${text === '' ? '.' : `: ${text}`}`, options);
  }
}

/** Whether a status describes a condition that may pass soon. */
function isTransient(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
