import type { ReadableSpan, SpanProcessor } from '@opentelemetry/sdk-trace';
import type { Clock, Logger } from '@plugboard/kernel';
import type { Timer } from '@plugboard/kernel/contracts';
import type { OtlpExporter } from './otlp-exporter.js';

/** Spans that wait, and their size, as bytes. What comes when either is reached is dropped. */
const MAX_SPANS = 2048;
const MAX_BYTES = 16 * 1024 * 1024;
/** A batch has at most so many spans, and ends with the one that exceeds these bytes. */
const BATCH_SPANS = 512;
const BATCH_BYTES = 2 * 1024 * 1024;
/** Milliseconds from the end of a span to its batch, and from a failure to the next attempt. */
const INTERVAL = 5000;
/** Milliseconds that a stop waits for the receiver. */
const MAX_STOP = 5000;
/** Bytes of a span besides its texts. */
const SPAN_BYTES = 1024;

/** Sends a batch. Returns undefined if the receiver has taken it, and never rejects. */
type Exporter = Pick<OtlpExporter, 'send'>;

interface QueuedSpan {
  readonly span: ReadableSpan;
  readonly bytes: number;
}

/**
 * Spans that have ended, until the receiver has taken them. Nothing waits for it: a receiver that
 * is dead or slow costs the spans that do not fit, and a line in the log.
 *
 * 1. A span waits up to `INTERVAL`, or until there are enough for a batch. One batch is sent at a
 *    time.
 * 2. A batch that may be taken later comes first the next time. Another one is dropped.
 * 3. `close` sends what is left, for at most `MAX_STOP`.
 */
export class SpanQueue implements SpanProcessor {
  /** Replaced when the options change. */
  exporter: Exporter;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #closing = new AbortController();
  #waiting: QueuedSpan[] = [];
  #bytes = 0;
  #sending: Promise<void> | undefined;
  #timer: Timer | undefined;
  #isClosed = false;
  #dropped = 0;
  #failure: string | undefined;

  constructor(exporter: Exporter, clock: Clock, log: Logger) {
    this.exporter = exporter;
    this.#clock = clock;
    this.#log = log;
  }

  /** Why the receiver did not take the last batch. Undefined if it did. */
  get failure(): string | undefined {
    return this.#failure;
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#isClosed) return;
    const bytes = sizeOf(span);
    if (this.#waiting.length >= MAX_SPANS || this.#bytes + bytes > MAX_BYTES) {
      this.#dropped++;
      return;
    }
    this.#waiting.push({ span, bytes });
    this.#bytes += bytes;
    if (this.#failure === undefined && this.#isFull) this.#send();
    else this.#schedule();
  }

  /** Sends what is left. @param within milliseconds that are left for the stop. */
  async close(within = MAX_STOP): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer?.cancel();
    const limit = this.#clock.after(Math.min(within, MAX_STOP), () => this.#closing.abort(new Error('the server stopped')));
    await this.#sending;
    let isTaken = true;
    while (isTaken && this.#waiting.length > 0 && !this.#closing.signal.aborted) isTaken = await this.#sendBatch();
    limit.cancel();
    const lost = this.#dropped + this.#waiting.length;
    if (lost > 0) this.#log.warn({ spans: lost }, 'spans are lost: the trace receiver did not take them');
  }

  async forceFlush(): Promise<void> {}

  shutdown(): Promise<void> {
    return this.close();
  }

  get #isFull(): boolean {
    return this.#waiting.length >= BATCH_SPANS || this.#bytes >= BATCH_BYTES;
  }

  #schedule(): void {
    if (this.#isClosed || this.#sending) return;
    this.#timer ??= this.#clock.after(INTERVAL, () => this.#send());
  }

  #send(): void {
    if (this.#sending) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#sending = this.#sendBatch().then(() => {
      this.#sending = undefined;
      if (this.#isClosed || this.#waiting.length === 0) return;
      if (this.#failure === undefined && this.#isFull) this.#send();
      else this.#schedule();
    });
  }

  /** Returns whether the receiver has taken the batch. */
  async #sendBatch(): Promise<boolean> {
    const batch = this.#nextBatch();
    const failure = await this.exporter.send(
      batch.map(({ span }) => span),
      this.#closing.signal,
    );
    // What waits stays in the count while it is sent: it is in memory.
    if (!failure?.retryable) {
      this.#waiting = this.#waiting.slice(batch.length);
      for (const { bytes } of batch) this.#bytes -= bytes;
      if (failure) this.#dropped += batch.length;
    }
    this.#report(failure?.reason);
    return failure === undefined;
  }

  #nextBatch(): readonly QueuedSpan[] {
    let bytes = 0;
    const end = this.#waiting.findIndex((queued) => {
      bytes += queued.bytes;
      return bytes > BATCH_BYTES;
    });
    return this.#waiting.slice(0, Math.min(BATCH_SPANS, end === -1 ? BATCH_SPANS : end + 1));
  }

  /** One line when the receiver fails, and one when it takes spans again. */
  #report(failure: string | undefined): void {
    const before = this.#failure;
    this.#failure = failure;
    if (failure !== undefined && failure !== before) {
      this.#log.warn({ reason: failure }, 'the trace receiver does not take spans; they wait, and the newest are dropped');
    } else if (failure === undefined && before !== undefined) {
      this.#log.info({ dropped: this.#dropped }, 'the trace receiver takes spans again');
      this.#dropped = 0;
    }
  }
}

/** Roughly: texts of one byte per character, which is what long ones mostly are. */
function sizeOf({ attributes }: ReadableSpan): number {
  let bytes = SPAN_BYTES;
  for (const name in attributes) {
    const value = attributes[name];
    if (typeof value === 'string') bytes += value.length;
  }
  return bytes;
}
