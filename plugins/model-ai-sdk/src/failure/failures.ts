import { createRedactor, ModelError } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import { type Fields, isObject } from '../json/json.js';
import { isAiSdkError } from './ai-sdk-error.js';

/** Characters of a provider's message that are passed on. */
const MAX_MESSAGE = 500;

/** The keys of known providers: Anthropic, OpenAI, Google, AWS. */
export const KEY_PATTERNS: readonly RegExp[] = [/sk-[A-Za-z0-9_-]{20,}/, /AIza[A-Za-z0-9_-]{30,}/, /A[KS]IA[A-Z0-9]{16}/];
/** A key that the provider has masked in part, as in `sk-ab****wxyz`. */
const MASKED_KEY = /(?<![\w-])[\w-]*\*{3,}[\w*-]*/;

const CONTEXT_LENGTH =
  /context_length_exceeded|maximum context length|context (window|length)|prompt is too long|input is too long|too many (input )?tokens|(prompt|input) (token count|length|tokens?).{0,40}exceed|exceeds? the (model's )?max(imum)?( number of)? (input )?tokens/i;
const CREDENTIALS = /\bapi[ _-]?key\b|security token|signature we calculated/i;
const UNKNOWN_MODEL =
  /\b(invalid|unknown|unsupported) model\b|model identifier is invalid|\bmodel\b.{0,80}\b(does not exist|not found)/i;
/** How the package of Anthropic reports two messages in one stream (AI-15). */
const ANOTHER_MESSAGE = /^Received message_start for message .* is still open/;
/** How the package of Bedrock reports a stream that ends in the middle of a frame. */
const BROKEN_FRAME = /^Incomplete Amazon Bedrock event-stream frame/;
/** With `store: true`, OpenAI keeps the model's reasoning for a while, and receives its id. */
const LOST_ITEM = /\bitem with id\b/i;
/** Statuses that describe the request and not the connection. */
const REQUEST_FAULTS: ReadonlySet<number> = new Set([400, 413, 415, 422]);

interface FailuresOptions {
  readonly secrets: readonly string[];
  readonly idleTimeout: string;
  readonly model: string;
  readonly entry: string;
}

/** Makes every error of a connection. Callers see messages: no address and no key in them. */
export class Failures {
  readonly #redact: (text: string) => string;
  readonly #idleTimeout: string;
  readonly #model: string;
  readonly #entry: string;

  /** @param entry the entry of the file that the messages name: `models.fast`. */
  constructor({ secrets, idleTimeout, model, entry }: FailuresOptions) {
    this.#redact = createRedactor({ values: secrets, patterns: [...KEY_PATTERNS, MASKED_KEY] });
    this.#idleTimeout = idleTimeout;
    this.#model = model;
    this.#entry = entry;
  }

  /** No byte arrived for `idleTimeout` (R-033). */
  idle(): ModelError {
    return new ModelError(`the provider sent nothing for ${this.#idleTimeout} (idleTimeout of ${this.#entry}).`, {
      retryable: false,
    });
  }

  redirect(status: number): ModelError {
    const message = `the provider answered ${status}, a redirect: set baseUrl of ${this.#entry} to its target.`;
    return new ModelError(message, { retryable: false });
  }

  /** @param limit bytes. */
  tooLarge(what: string, limit: number): ModelError {
    return new ModelError(`the provider sent ${what} of more than ${limit / 2 ** 20} MiB.`, { retryable: false });
  }

  /** More tool calls in one answer than are read (S-55). */
  tooManyCalls(limit: number): ModelError {
    return new ModelError(`the provider sent more than ${limit} tool calls in one answer.`, { retryable: false });
  }

  /** The stream ended without `finish`, or its end was not regular (AI-3, AI-4). */
  unfinished(reason: string, raw: string | undefined): ModelError {
    const shown = raw === undefined ? '' : ` (${this.#clean(raw)})`;
    if (reason === 'interrupted' || (reason === 'other' && raw === undefined))
      return new ModelError(`the answer was cut off: the provider ended it without a finish reason${shown}.`, {
        retryable: true,
      });
    return new ModelError(`the provider ended the answer with the finish reason "${reason}"${shown}.`, { retryable: true });
  }

  /** Another message follows in the same stream (AI-15). */
  spliced(): ModelError {
    return new ModelError(`the answer is more than one message; check ${this.#between}.`, { retryable: true });
  }

  /** An error in JSON or a web page, although the status is 200. @param text its beginning. */
  notAStream(text: string): ModelError {
    const isPage = text.trimStart().startsWith('<');
    const shown = isPage ? '' : this.#clean(errorIn(text) ?? text);
    const what = isPage ? 'a web page instead of a stream' : `JSON instead of a stream (${shown})`;
    const retryable = TRANSIENT_TEXT.test(shown);
    return new ModelError(`the provider answered 200 with ${what}; check ${this.#between}.`, { retryable });
  }

  get #between(): string {
    return `baseUrl of ${this.#entry}, and what stands between the provider and this server, such as a proxy`;
  }

  /** The finish reason is `tool-calls`, but there is no call. */
  missingCalls(): ModelError {
    return new ModelError('the provider announced tool calls and sent none.', { retryable: true });
  }

  /**
   * What a call of the package threw, or an `error` part of its stream (AI-2). A TurnError, such as
   * a shortage of memory, stays as it is.
   *
   * @param now milliseconds since 1970.
   */
  of(error: unknown, now: number): ModelError | TurnError {
    const own = causesOf(error).find((cause) => cause instanceof ModelError || cause instanceof TurnError);
    if (own) return own;
    if (isAiSdkError(error, 'LoadAPIKeyError') || isAiSdkError(error, 'LoadSettingError'))
      return new ModelError(`${this.#clean(messageOf(error))}`, { retryable: false, cause: error });
    if (isAiSdkError(error, 'UnsupportedFunctionalityError') || isAiSdkError(error, 'InvalidPromptError'))
      return this.#requestFault(
        'invalid_request',
        `the provider package cannot send the request: ${this.#clean(messageOf(error))}`,
        error,
      );
    const sentence = messageOf(error);
    if (ANOTHER_MESSAGE.test(sentence)) return this.spliced();
    if (BROKEN_FRAME.test(sentence)) return this.brokenOff(error);
    const status = statusOf(error);
    const text = this.#clean(sentence);
    // Packages report an answer that breaks off as a failure with status 200.
    if (status !== undefined && status < 300) return this.brokenOff(error);
    if (status === undefined) return this.#withoutStatus(error, text);
    if (CONTEXT_LENGTH.test(text) && status !== 401 && status !== 429)
      return this.#requestFault(
        'context_length_exceeded',
        `the conversation is too long for the model; the provider answered ${status}: ${text}`,
        error,
      );
    if (status === 401 || ((status === 400 || status === 403) && CREDENTIALS.test(text)))
      return new ModelError(
        `the provider did not accept the credentials (${status}); check apiKey and credentials of ${this.#entry}.`,
        {
          retryable: false,
          cause: new Error(text),
        },
      );
    if (status === 404 && LOST_ITEM.test(text))
      return this.#requestFault('invalid_request', `the provider no longer has a part of the conversation: ${text}`, error);
    if (status === 404 || (status === 400 && UNKNOWN_MODEL.test(text)))
      return new ModelError(
        `the provider answered ${status}; check that it has the model "${this.#model}", and baseUrl of ${this.#entry}: ${text}`,
        // A 400 may still be about the conversation, which the runtime then shortens (R-086).
        { retryable: false, isRequestFault: status === 400, isUpstream: status === 400, cause: error },
      );
    const retryAfter = retryAfterOf(error, now);
    const wait = retryAfter === undefined ? '' : ` and asks to wait ${Math.ceil(retryAfter)} s`;
    return new ModelError(`the provider answered ${status}${wait}${text === '' ? '.' : `: ${text}`}`, {
      code: status === 429 ? 'rate_limited' : status === 529 || status === 503 ? 'overloaded' : undefined,
      retryable: isTransient(status),
      retryAfter,
      isRequestFault: REQUEST_FAULTS.has(status),
      isUpstream: true,
      cause: error,
    });
  }

  /** The request reached no server, or the answer cannot be read. */
  #withoutStatus(error: unknown, text: string): ModelError {
    const code = codeOf(error);
    if (code === 'ENOENT' || code === 'EACCES')
      return new ModelError(`the provider package cannot read a file (${code}); check those that ${this.#entry} names.`, {
        retryable: false,
        cause: error,
      });
    if (isAiSdkError(error, 'APICallError') || code !== undefined) {
      const hint =
        code === 'ECONNREFUSED' || code === 'ENOTFOUND' ? `; check baseUrl of ${this.#entry} and that it is running` : '';
      return new ModelError(`the provider could not be reached${code === undefined ? '' : ` (${code})`}${hint}.`, {
        retryable: true,
        cause: error,
      });
    }
    const { isRetryable, value } = fieldsOf(error);
    const retryable = isRetryable === true || TRANSIENT_TYPE.test(String(fieldsOf(value).type));
    const what = text === '' ? 'the provider reported an error.' : `the provider reported an error: ${text}`;
    return new ModelError(what, { retryable: retryable || TRANSIENT_TEXT.test(text), cause: error });
  }

  /** The connection was closed in the middle of an answer. */
  brokenOff(cause: unknown): ModelError {
    const code = codeOf(cause);
    const how = code === undefined ? '' : ` (${code})`;
    return new ModelError(`the answer was cut off: the provider closed the connection${how}.`, { retryable: true, cause });
  }

  #requestFault(code: 'context_length_exceeded' | 'invalid_request', message: string, cause: unknown): ModelError {
    return new ModelError(message, { code, cause, isUpstream: code === 'context_length_exceeded' });
  }

  #clean(text: string): string {
    const clean = this.#redact(text).replaceAll(/\s+/g, ' ').trim();
    return clean.length > MAX_MESSAGE ? `${clean.slice(0, MAX_MESSAGE - 1).toWellFormed()}…` : clean;
  }
}

const TRANSIENT_TEXT = /overloaded|try (again|later)|temporarily|rate limit|too many requests|capacity|timed? ?out|unavailable/i;

/** The `type` of an error that Mistral sends inside a stream. */
const TRANSIENT_TYPE = /server_error|rate_limit|capacity|unavailable|overloaded/;

/** 424: the model of Bedrock failed in the middle of its answer. */
function isTransient(status: number): boolean {
  return status === 408 || status === 409 || status === 424 || status === 429 || status >= 500;
}

function statusOf(error: unknown): number | undefined {
  const { statusCode } = fieldsOf(error);
  return typeof statusCode === 'number' ? statusCode : undefined;
}

/** The provider's sentence, in an error of the package, an error event or an unreadable event. */
function messageOf(error: unknown): string {
  const { message, error: inner, value, data, responseBody } = fieldsOf(error);
  if (isAiSdkError(error, 'TypeValidationError')) {
    const sentence = sentenceOf(value);
    if (sentence !== undefined) return sentence;
  }
  // A body in another form than the package knows, as from a gateway: its message is the status.
  if (isAiSdkError(error, 'APICallError') && data === undefined) return errorIn(String(responseBody)) ?? error.message;
  if (typeof message === 'string') return message;
  if (isObject(inner) && typeof inner.message === 'string') return inner.message;
  return typeof error === 'string' ? error : '';
}

/** The provider's sentence in an error that it sent as JSON. */
function errorIn(text: string): string | undefined {
  try {
    return sentenceOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function sentenceOf(value: unknown): string | undefined {
  const { message, error, detail } = fieldsOf(Array.isArray(value) ? value[0] : value);
  const found = [fieldsOf(error).message, error, message, detail].find((part) => typeof part === 'string' && part !== '');
  return typeof found === 'string' ? found : undefined;
}

/** The system's code of a failed request, such as ECONNREFUSED. */
function codeOf(error: unknown): string | undefined {
  for (const cause of causesOf(error)) if ('code' in cause && typeof cause.code === 'string') return cause.code;
  return undefined;
}

/** An error and its causes. */
function causesOf(error: unknown): readonly Error[] {
  const causes: Error[] = [];
  for (let cause = error; cause instanceof Error && causes.length < 5; cause = cause.cause) causes.push(cause);
  return causes;
}

/** The wait that the provider asks for, in seconds. */
function retryAfterOf(error: unknown, now: number): number | undefined {
  const { responseHeaders, responseBody } = fieldsOf(error);
  const headers = isObject(responseHeaders) ? responseHeaders : {};
  const { 'retry-after-ms': milliseconds, 'retry-after': after } = headers;
  if (typeof milliseconds === 'string' && Number(milliseconds) >= 0) return Number(milliseconds) / 1000;
  // Gemini says it in the body: `google.rpc.RetryInfo`.
  const [, delay] = /"retryDelay":\s*"([\d.]+)s"/.exec(String(responseBody)) ?? [];
  if (delay !== undefined) return Number(delay);
  if (typeof after !== 'string' || after.trim() === '') return undefined;
  if (Number(after) >= 0) return Number(after);
  const date = Date.parse(after);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now) / 1000;
}

function fieldsOf(error: unknown): Fields {
  return isObject(error) ? error : {};
}
