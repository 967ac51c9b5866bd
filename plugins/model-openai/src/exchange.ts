import { type Clock, type IdSource, ModelError, type Timer } from '@plugboard/kernel';
import type { Dispatcher } from 'undici';
import { Answer } from './answer.js';
import { Batches } from './batches.js';
import type { BodyReader } from './body-reader.js';
import { ErrorBody } from './error-body.js';
import { EventStream } from './event-stream.js';
import type { Failures } from './failures.js';
import { WholeBody } from './whole-body.js';

/** Bytes whose events nobody has taken, at which the socket is read no further. */
const FULL = 131_072;

/** Milliseconds that a response may stay open behind the end of the answer, before its socket is closed. */
const LINGER = 1000;

type Headers = Readonly<Record<string, string | string[] | undefined>>;
type Controller = Dispatcher.DispatchController;

export interface ExchangeOptions {
  /** Whether a stream was asked for. */
  readonly incremental: boolean;
  /** Milliseconds without a byte after which the answer has failed. */
  readonly idleTimeout: number;
  readonly failures: Failures;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly signal: AbortSignal;
}

/**
 * One request to a model server and its response, as undici tells of it.
 *
 * 1. undici calls `onRequestStart` when it has a connection to send the request on.
 * 2. The head of the response decides how its body is read: as events, as one JSON object, or as an error.
 * 3. Each read of the socket adds events to `batches`; those of one tick are one batch. While the reader is behind, the socket is not read.
 * 4. The answer is over when the body says so, ends or breaks off, when nothing came for too long, when the signal is aborted, or when the
 *    reader leaves. Except after a good end the socket is closed then; after a good end it serves the next request.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly batches = new Batches(
    () => this.#onTaken(),
    () => this.#letGo(),
  );
  readonly #options: ExchangeOptions;
  #controller: Controller | undefined;
  #reader: BodyReader | undefined;
  /** Runs while an answer is waited for; afterwards while its response has not ended. */
  #timer: Timer | undefined;
  #unread = 0;
  #isInTick = false;
  /** The reader has been told all that it will be told. */
  #isOver = false;
  /** Nothing more will come from undici. */
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
    controller.rawHeaders = null; // would be held as long as the response takes, and the read that they came in with them
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
      this.#reader.read(chunk, this.batches.gathered);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#reader.isDone) this.#finish();
    else if (this.batches.gathered.length > 0) {
      this.#unread += chunk.length;
      if (this.#unread >= FULL) controller.pause();
    }
  }

  onResponseEnd(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    if (this.#isOver) return;
    try {
      this.#reader?.end(this.batches.gathered);
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
    if (this.#reader === undefined) this.#fail(failures.unanswered(error));
    else this.#breakOff(failures.brokenOff(error));
  }

  #readerFor(status: number, headers: Headers): BodyReader {
    const { failures, ids, incremental } = this.#options;
    if (status >= 300) return new ErrorBody((body) => failures.status(status, headers, body));
    const answer = new Answer(failures, ids);
    // What the response says that it is counts: there are servers that stream what was asked for whole, and others that never stream.
    const type = mediaType(headers['content-type']) ?? (incremental ? 'text/event-stream' : 'application/json');
    if (type === 'text/event-stream') return new EventStream(answer, failures);
    if (type === 'application/json') return new WholeBody(answer, failures);
    throw failures.garbled(`an answer of the type ${type.replaceAll(/[^\w./+-]/g, '').slice(0, 100)}`);
  }

  /** Everything that this tick brought has been read: one batch. */
  readonly #onTickOver = (): void => {
    this.#isInTick = false;
    this.batches.flush();
    if (this.#isOver && !this.#isClosed) this.#timer = this.#options.clock.after(LINGER, () => this.#closeSocket());
  };

  #onTaken(): void {
    this.#unread = 0;
    if (this.#isOver || !this.#controller?.paused) return;
    this.#timer?.refresh();
    this.#controller.resume();
  }

  readonly #onIdle = (): void => {
    // A socket that is not read is not silent.
    if (this.#controller?.paused) this.#timer?.refresh();
    else this.#breakOff(this.#options.failures.silent());
  };

  readonly #onAbort = (): void => {
    this.batches.abort(this.#options.signal.reason);
    this.#letGo();
  };

  #breakOff(failure: ModelError): void {
    try {
      if (this.#reader === undefined) throw failure;
      this.#reader.breakOff(failure, this.batches.gathered);
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
    this.batches.fail(error instanceof ModelError ? error : this.#options.failures.garbled('what could not be read', error));
    this.#closeSocket();
  }

  #letGo(): void {
    this.#end();
    this.#closeSocket();
  }

  #end(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#options.signal.removeEventListener('abort', this.#onAbort);
  }

  /** undici closes the socket of a request that is aborted, and then calls `onResponseError`. */
  #closeSocket(): void {
    if (!this.#isClosed) this.#controller?.abort(new Error('the answer is over'));
  }
}

/** `text/html` of `text/html; charset=utf-8`; undefined where there is none. */
function mediaType(contentType: string | string[] | undefined): string | undefined {
  if (typeof contentType !== 'string') return undefined;
  const end = contentType.indexOf(';');
  return (end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase() || undefined;
}
