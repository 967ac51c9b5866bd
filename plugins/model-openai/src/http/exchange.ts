import { type Clock, type IdSource, ModelError, type Timer } from '@plugboard/kernel';
import type { Dispatcher } from 'undici';
import { AnswerParser } from '../answer/answer-parser.js';
import type { BodyReader } from '../answer/body-reader.js';
import { EventStream } from '../answer/event-stream.js';
import { JsonBody } from '../answer/json-body.js';
import type { Failures } from '../failure/failures.js';
import { Batches } from './batches.js';
import { ErrorBody } from './error-body.js';

/** Reading the socket pauses when this many bytes wait for the reader. */
const HIGH_WATER_MARK = 131_072;

/** Milliseconds that a response may stay open after its answer is complete. */
const CLOSE_DELAY = 1000;

type Headers = Readonly<Record<string, string | string[] | undefined>>;
type Controller = Dispatcher.DispatchController;

export interface ExchangeOptions {
  /** Whether the request asked for a stream. */
  readonly incremental: boolean;
  /** Milliseconds without a byte after which the answer fails. */
  readonly idleTimeout: number;
  readonly failures: Failures;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly signal: AbortSignal;
}

/**
 * One request to a model server and its response: a handler of undici's callbacks.
 *
 * 1. undici calls `onRequestStart` when it has a connection for the request.
 * 2. The head of the response decides how the body is read: as events, as one JSON object, or as an
 *    error.
 * 3. Each read of the socket appends events to `batches`; those of one tick are one batch. While the
 *    reader is behind, the socket is paused.
 * 4. The answer is over when it is complete, when the body ends or breaks off, after `idleTimeout`
 *    without a byte, when the signal is aborted, or when the reader stops. After a complete answer
 *    the socket serves the next request; otherwise it is closed.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly batches = new Batches(
    () => this.#onRead(),
    () => this.#cancel(),
  );
  readonly #options: ExchangeOptions;
  #controller: Controller | undefined;
  #reader: BodyReader | undefined;
  /** Runs until the answer is over, then until the response has ended. */
  #timer: Timer | undefined;
  #unread = 0;
  #isInTick = false;
  /** The reader has received all that it will receive. */
  #isOver = false;
  /** undici makes no more calls. */
  #isClosed = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    options.signal.addEventListener('abort', this.#onAbort);
    if (options.signal.aborted) this.#onAbort();
  }

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.#isOver) this.#closeSocket();
    else this.#timer = this.#options.clock.after(this.#options.idleTimeout, this.#onIdle);
  }

  onResponseStart(controller: Controller, status: number, headers: Headers): void {
    controller.rawHeaders = null; // would keep the buffer they arrived in for as long as the response takes
    if (status < 200 || this.#isOver) return;
    this.#timer?.refresh();
    try {
      this.#reader = this.#readerFor(status, headers);
    } catch (error) {
      this.#fail(error);
    }
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#isOver || this.#reader === undefined) return;
    if (!this.#isInTick) {
      this.#isInTick = true;
      this.#timer?.refresh();
      queueMicrotask(this.#onTickOver);
    }
    try {
      this.#reader.read(chunk, this.batches.pending);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#reader.isDone) this.#finish();
    else if (this.batches.pending.length > 0) {
      this.#unread += chunk.length;
      if (this.#unread >= HIGH_WATER_MARK) controller.pause();
    }
  }

  onResponseEnd(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    if (this.#isOver) return;
    try {
      this.#reader?.end(this.batches.pending);
      this.#finish();
    } catch (error) {
      this.#fail(error);
    }
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    if (this.#isOver) return;
    const { failures } = this.#options;
    if (this.#reader === undefined) this.#fail(failures.noResponse(error));
    else this.#interrupt(failures.interrupted(error));
  }

  #readerFor(status: number, headers: Headers): BodyReader {
    const { failures, ids, incremental } = this.#options;
    if (status >= 300) return new ErrorBody((body) => failures.status(status, headers, body));
    const answer = new AnswerParser(failures, ids);
    // The content type decides: some servers stream what was not to be streamed, others never stream.
    const type = mediaType(headers['content-type']) ?? (incremental ? 'text/event-stream' : 'application/json');
    if (type === 'text/event-stream') return new EventStream(answer, failures);
    if (type === 'application/json') return new JsonBody(answer, failures);
    throw failures.unreadable(`an answer of the type ${type.replaceAll(/[^\w./+-]/g, '').slice(0, 100)}`);
  }

  /** All data of this tick has been read: one batch. */
  readonly #onTickOver = (): void => {
    this.#isInTick = false;
    this.batches.flush();
    if (this.#isOver && !this.#isClosed) this.#timer = this.#options.clock.after(CLOSE_DELAY, () => this.#closeSocket());
  };

  #onRead(): void {
    this.#unread = 0;
    if (this.#isOver || !this.#controller?.paused) return;
    this.#timer?.refresh();
    this.#controller.resume();
  }

  readonly #onIdle = (): void => {
    // A paused socket is not idle.
    if (this.#controller?.paused) this.#timer?.refresh();
    else this.#interrupt(this.#options.failures.idle());
  };

  readonly #onAbort = (): void => {
    this.batches.abort(this.#options.signal.reason);
    this.#cancel();
  };

  #interrupt(failure: ModelError): void {
    try {
      if (this.#reader === undefined) throw failure;
      this.#reader.interrupt(failure, this.batches.pending);
      this.#finish();
      this.#closeSocket();
    } catch (error) {
      this.#fail(error);
    }
  }

  #finish(): void {
    this.#end();
    this.batches.end();
  }

  #fail(error: unknown): void {
    this.#end();
    this.batches.fail(
      error instanceof ModelError ? error : this.#options.failures.unreadable('an answer that could not be read', error),
    );
    this.#closeSocket();
  }

  #cancel(): void {
    this.#end();
    this.#closeSocket();
  }

  #end(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#options.signal.removeEventListener('abort', this.#onAbort);
  }

  /** Aborts the request: undici closes its socket and calls `onResponseError`. */
  #closeSocket(): void {
    if (!this.#isClosed) this.#controller?.abort(new Error('the answer is over'));
  }
}

/** `text/html` of `text/html; charset=utf-8`; undefined without a content type. */
function mediaType(contentType: string | string[] | undefined): string | undefined {
  if (typeof contentType !== 'string') return undefined;
  const end = contentType.indexOf(';');
  return (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase() || undefined;
}
