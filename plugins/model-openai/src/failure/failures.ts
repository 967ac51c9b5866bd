import { type Clock, ModelError } from '@plugboard/kernel';
import { isObject } from '../json/json.js';
import { parseJson } from '../json/split-json.js';
import type { AnswerTooLarge } from './answer-too-large.js';
import { isCredentials, isRequestFault, isTransient, isTransientStatus, kindOf } from './classify.js';
import { errorCause, errorText, errorTextOfBody } from './error-object.js';
import type { Redactor } from './redactor.js';
import { isDailyQuota, retryAdvice, retryDelay } from './retry-advice.js';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Characters of unreadable text that a message shows. */
const MAX_SHOWN = 160;

/** undici's codes for a pool that this side has closed. */
const STOPPED: ReadonlySet<string> = new Set(['UND_ERR_DESTROYED', 'UND_ERR_CLOSED']);

/** Makes every error of a connection. Callers see messages: no address and no key in them. */
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
        return ['the model server refused the connection; check that it is running and that baseUrl is correct.', true];
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
    if (STOPPED.has(code)) return ['the connection was stopped before the model server answered.', false];
    if (/^HPE_|^HTTPParserError$|HEADERS_OVERFLOW/.test(code)) return [`the model server sent invalid HTTP (${code}).`, false];
    if (/CERT|SSL|TLS|EPROTO|SELF_SIGNED|VERIFY/.test(code))
      return [`the TLS connection to the model server failed (${code}).`, true];
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
    return new ModelError(`the model server closed the connection in the middle of its answer (${code}).`, {
      retryable: true,
      cause,
    });
  }

  /** The model had not finished (R-034). @param stray unreadable text of the stream. */
  truncated(stray?: string): ModelError {
    const last = stray === undefined ? '' : ` Last data received: ${this.#show(stray)}`;
    return new ModelError(`the answer was cut off: the model server ended it without a finish reason.${last}`, {
      retryable: true,
    });
  }

  /** The finish reason means a failure, or nothing that is known. */
  badFinishReason(word: string): ModelError {
    return new ModelError(`the model server ended the answer with finish_reason "${this.#show(word)}".`, { retryable: true });
  }

  /** The finish reason is `tool_calls`, but there is neither a call nor text. */
  missingCalls(): ModelError {
    return new ModelError('the model server announced tool calls and sent none.', { retryable: true });
  }

  /**
   * The server counted tokens and sent no choice. Gemini does so when it blocks content without
   * saying so.
   *
   * @param chunk the last one, as JSON.
   */
  noAnswer(chunk: string): ModelError {
    const message = `the model server sent no answer to the request, as some do when they block its content: ${this.#show(chunk)}.`;
    return new ModelError(message, { retryable: false, isRequestFault: true });
  }

  /** The response has no body. */
  empty(): ModelError {
    return new ModelError('the model server sent an empty answer.', { retryable: true });
  }

  /** An event, a body or a part of an answer exceeds its limit (R-036, S-55). */
  tooLarge({ part, limit, unit }: AnswerTooLarge): ModelError {
    const most = unit === 'bytes' ? `${part} of more than ${limit / 2 ** 20} MiB` : `more than ${limit} ${part}`;
    return new ModelError(`the model server sent ${most}.`, { retryable: false });
  }

  /**
   * The response does not follow the protocol.
   *
   * @param data names the data that was received, for example `an event that is not JSON`.
   * @param text the data, or a part of it.
   * @param hasBegun whether readable parts of an answer came before.
   */
  unreadable(data: string, { text = '', hasBegun = false, cause }: Unreadable = {}): ModelError {
    const shown = this.#show(text);
    const hint = hasBegun ? '' : ' Check that baseUrl points to a chat-completions server.';
    return new ModelError(`the model server sent ${data}${shown === '' ? '' : `: ${shown}`}.${hint}`, {
      retryable: false,
      cause,
    });
  }

  /** An error in place of an answer, or in the middle of it. */
  reported(error: unknown): ModelError {
    const text = this.#redactor.clean(errorText(error) ?? '');
    const cause = errorCause(error);
    const code = kindOf(cause, text);
    if (code === 'context_length_exceeded') return this.#tooLong('reported an error', text);
    if (isCredentials(cause, text)) return this.#credentials(cause.status, text, { retryable: false });
    const retryable = isTransient(cause, text) && !isDailyQuota(error);
    const retryAfter = retryable ? seconds(retryDelay(error, text)) : undefined;
    return new ModelError(`the model server reported an error${text === '' ? '.' : `: ${text}`}`, {
      code,
      retryable,
      retryAfter,
      isUpstream: true,
      // A server that streams has sent its status before.
      isRequestFault: code === undefined ? isRequestFault(cause.status) : undefined,
    });
  }

  /** A status other than success. @param body the part of it that was read. */
  status(status: number, headers: Headers, body: string): ModelError {
    const advice = retryAdvice(headers, this.#clock.now());
    const text = this.#redactor.clean(errorTextOfBody(body) ?? '');
    const error = errorObjectOf(parseJson(body));
    const cause = { ...errorCause(error), status };
    const code = kindOf(cause, text);
    if (code === 'context_length_exceeded' && status !== 401) return this.#tooLong(`answered ${status}`, text);
    const isUsedUp = status === 429 && (isDailyQuota(error) || !isTransient({ ...cause, status: 429 }, text));
    const retryAfter = advice.retryAfter ?? (isUsedUp ? undefined : retryDelay(error, text));
    const options = {
      retryable: advice.retryable ?? (isTransientStatus(status) && !isUsedUp),
      retryAfter: seconds(retryAfter),
    };
    if (isCredentials(cause, text)) return this.#credentials(status, text, options);
    const redirect = status < 400 ? ', a redirect: set baseUrl to its target' : '';
    const wait = retryAfter === undefined ? '' : ` and asks to wait ${Math.ceil(retryAfter / 1000)} s`;
    return new ModelError(`the model server answered ${status}${redirect}${wait}${text === '' ? '.' : `: ${text}`}`, {
      ...options,
      code,
      isUpstream: true,
      isRequestFault: code === undefined ? isRequestFault(status) : undefined,
    });
  }

  #tooLong(how: string, text: string): ModelError {
    return new ModelError(`the conversation is too long for the model; the model server ${how}: ${text}`, {
      code: 'context_length_exceeded',
      isUpstream: true,
    });
  }

  /** Model servers repeat parts of the key in such messages, so only the log shows them. */
  #credentials(
    status: number | undefined,
    text: string,
    options: { retryable: boolean; retryAfter?: number | undefined },
  ): ModelError {
    const cause = text === '' ? undefined : new Error(text);
    const code = status === undefined ? '' : ` (${status})`;
    return new ModelError(`the model server did not accept the credentials${code}; check apiKey.`, { ...options, cause });
  }

  /** Redacts and shortens text of the model server, to show it in a message. */
  #show(text: string): string {
    const clean = this.#redactor.clean(text);
    return clean.length > MAX_SHOWN ? `${clean.slice(0, MAX_SHOWN - 1).toWellFormed()}…` : clean;
  }
}

interface Unreadable {
  readonly text?: string | undefined;
  readonly hasBegun?: boolean;
  readonly cause?: unknown;
}

function seconds(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined ? undefined : milliseconds / 1000;
}

/** The error object of a body: `{"error":{…}}`, `[{"error":{…}}]`, or the body itself. */
function errorObjectOf(body: unknown): unknown {
  const value: unknown = Array.isArray(body) ? body[0] : body;
  return isObject(value) && isObject(value.error) ? value.error : value;
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}
