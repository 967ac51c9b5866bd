import type { Transform } from 'node:stream';
import { type Clock, type IdSource, ModelError, type ModelRequest } from '@plugboard/kernel';
import { Account, type Timer, TurnError } from '@plugboard/kernel/contracts';
import type { Dispatcher } from 'undici';
import { AnswerBody } from '../answer/answer-body.js';
import { type AnswerOptions, AnswerParser } from '../answer/answer-parser.js';
import type { BodyReader } from '../answer/body-reader.js';
import { AnswerTooLarge } from '../failure/answer-too-large.js';
import type { Failures } from '../failure/failures.js';
import { Batches } from './batches.js';
import { decompressorFor } from './decompress.js';

/** Bytes that may wait for the reader before the socket is paused. */
const MAX_UNREAD = 131_072;

/** Milliseconds that a response may stay open after its answer is complete. */
const CLOSE_DELAY = 1000;

type Headers = Readonly<Record<string, string | string[] | undefined>>;
type Controller = Dispatcher.DispatchController;

interface ModelExchangeOptions {
  /** How the answer is read. */
  readonly answer: Omit<AnswerOptions, 'failures' | 'ids'>;
  /** Milliseconds without a byte after which the answer fails. */
  readonly idleTimeout: number;
  readonly failures: Failures;
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly signal: AbortSignal;
  /** The memory of the turn. */
  readonly account: ModelRequest['account'];
}

/**
 * One request to a model server and its response: a handler of undici's callbacks.
 *
 * 1. undici calls `onRequestStart` when it has a connection for the request.
 * 2. The status decides how the body is read: as an answer or as an error.
 * 3. Each read of the socket appends events to `batches`; those of one tick are one batch. While
 *    the reader is behind, the socket is paused.
 * 4. The answer is over when it is complete, when the body ends or breaks off, after `idleTimeout`
 *    without a byte, when the signal is aborted, or when the reader stops. After a complete answer
 *    the socket serves the next request; otherwise it is closed.
 */
export class ModelExchange implements Dispatcher.DispatchHandler {
  readonly batches = new Batches(
    () => this.#onRead(),
    () => this.#cancel(),
    () => this.#release(),
  );
  readonly #options: ModelExchangeOptions;
  #controller: Controller | undefined;
  #reader: BodyReader | undefined;
  /** Set if the response is compressed. */
  #decompressor: Transform | undefined;
  /** Runs until the answer is over, then until the response has ended. */
  #timer: Timer | undefined;
  #unread = 0;
  /** Bytes that are reserved for what the reader of the body holds. */
  #reserved = 0;
  #isPaused = false;
  #isInTick = false;
  /** The answer has ended, for the reader of `batches` too. */
  #isOver = false;
  /** undici makes no more calls. */
  #isClosed = false;

  constructor(options: ModelExchangeOptions) {
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
    const { failures, ids, answer } = this.#options;
    this.#reader =
      status >= 300
        ? new ErrorBody((body) => failures.status(status, headers, body))
        : new AnswerBody(new AnswerParser({ failures, ids, ...answer }), failures);
    const decompressor = decompressorFor(headers['content-encoding']);
    if (typeof decompressor === 'string')
      this.#fail(failures.unreadable('an answer in an unknown encoding', { text: decompressor }));
    else if (decompressor) this.#decompress(decompressor);
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    if (this.#isOver) return;
    if (this.#decompressor === undefined) this.#onBody(chunk);
    else this.#decompressor.write(chunk);
  }

  onResponseEnd(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    if (this.#isOver) return;
    if (this.#decompressor === undefined) this.#onBodyEnd();
    else this.#decompressor.end();
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    if (this.#isOver) return;
    const { failures } = this.#options;
    if (this.#reader === undefined) this.#fail(failures.noResponse(error));
    else this.#interrupt(failures.interrupted(error));
  }

  #decompress(decompressor: Transform): void {
    this.#decompressor = decompressor;
    decompressor.on('data', (chunk: Buffer) => this.#onBody(chunk));
    decompressor.on('end', () => this.#onBodyEnd());
    decompressor.on('error', (cause) => {
      if (!this.#isOver) this.#fail(this.#options.failures.unreadable('compressed data that cannot be read', { cause }));
    });
  }

  #onBody(chunk: Buffer): void {
    if (this.#isOver || this.#reader === undefined) return;
    if (!this.#isInTick) {
      this.#isInTick = true;
      this.#timer?.refresh();
      queueMicrotask(this.#onTickOver);
    }
    try {
      this.#reader.read(chunk, this.batches.pending);
      this.#reserve(this.#reader.held);
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#reader.isDone) this.#finish();
    else if (this.batches.pending.length > 0) {
      this.#unread += chunk.length;
      if (this.#unread >= MAX_UNREAD) this.#pause();
    }
  }

  #onBodyEnd(): void {
    if (this.#isOver) return;
    try {
      this.#reader?.end(this.batches.pending);
      this.#finish();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** All data of this tick has been read: one batch. */
  readonly #onTickOver = (): void => {
    this.#isInTick = false;
    this.batches.flush();
    if (this.#isOver && !this.#isClosed) this.#timer = this.#options.clock.after(CLOSE_DELAY, () => this.#closeSocket());
  };

  #onRead(): void {
    this.#unread = 0;
    if (!this.#isPaused || this.#isOver) return;
    this.#isPaused = false;
    this.#decompressor?.resume();
    if (this.#isClosed) return;
    this.#timer?.refresh();
    this.#controller?.resume();
  }

  #pause(): void {
    this.#isPaused = true;
    this.#decompressor?.pause();
    if (!this.#isClosed) this.#controller?.pause();
  }

  readonly #onIdle = (): void => {
    // A paused socket is not idle.
    if (this.#isPaused) this.#timer?.refresh();
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
    this.batches.fail(this.#failureOf(error));
    this.#closeSocket();
  }

  #failureOf(error: unknown): ModelError | TurnError {
    const { failures } = this.#options;
    if (error instanceof ModelError || error instanceof TurnError) return error;
    if (error instanceof AnswerTooLarge) return failures.tooLarge(error);
    return failures.unreadable('an answer that could not be read', { cause: error });
  }

  /** @throws TurnError `overloaded` without memory. */
  #reserve(held: number): void {
    const missing = Account.costOf(held) - this.#reserved;
    if (missing <= 0) return;
    this.#options.account?.require(missing);
    this.#reserved += missing;
  }

  /** The runtime has all events, and reserves them itself. */
  #release(): void {
    this.#options.account?.release(this.#reserved);
    this.#reserved = 0;
  }

  #cancel(): void {
    this.#end();
    this.#closeSocket();
  }

  #end(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#decompressor?.destroy();
  }

  /** Aborts the request: undici closes its socket and calls `onResponseError`. */
  #closeSocket(): void {
    if (!this.#isClosed) this.#controller?.abort(new Error('the answer is over'));
  }
}

/** Bytes of an error body that are read. */
const MAX_BODY = 65_536;

/** Reads the body of an error response. */
class ErrorBody implements BodyReader {
  readonly isDone = false;
  readonly held = 0; // less than it takes to count
  readonly #errorFor: (body: string) => ModelError;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  /** @param errorFor makes the error from the part of the body that was read. */
  constructor(errorFor: (body: string) => ModelError) {
    this.#errorFor = errorFor;
  }

  read(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length >= MAX_BODY) this.end();
  }

  end(): never {
    throw this.#errorFor(Buffer.concat(this.#chunks).toString());
  }

  /** Reports the status: it says more than how its body was cut off. */
  interrupt(): never {
    this.end();
  }
}
