import {
  type Attributes,
  type Link,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Clock } from '@plugboard/kernel';

interface SpanOptions {
  readonly kind?: SpanKind;
  /** Without a parent, a trace begins. */
  readonly parent?: SpanContext | undefined;
  /** The span that caused it, in another trace. */
  readonly cause?: SpanContext | undefined;
  readonly attributes: Attributes;
}

/**
 * The spans that have begun and not ended. Parents are arguments: nothing is taken from the context
 * of the code that runs, so that generators and parallel turns cannot mix them up.
 */
export class OpenSpans {
  /** Replaced when the options change. */
  tracer: Tracer;
  readonly #clock: Clock;
  readonly #open = new Set<OpenSpan>();
  /** Between the wall clock, which has milliseconds, and the one that orders what is within one. */
  #offset = 0;

  constructor(tracer: Tracer, clock: Clock) {
    this.tracer = tracer;
    this.#clock = clock;
  }

  start(name: string, { kind = SpanKind.INTERNAL, parent, cause, attributes }: SpanOptions): OpenSpan {
    const context = parent ? trace.setSpanContext(ROOT_CONTEXT, parent) : ROOT_CONTEXT;
    const links: Link[] = cause ? [{ context: cause }] : [];
    const startTime = this.#now();
    const begun = this.tracer.startSpan(name, { kind, links, attributes, startTime }, context);
    const span = new OpenSpan(begun, startTime, this.#clock, () => this.#open.delete(span));
    this.#open.add(span);
    return span;
  }

  /** Ends every span: the plugin stops. */
  endAll(errorType: string): void {
    for (const span of this.#open) span.end({}, errorType);
  }

  /** Milliseconds since 1970, with fractions, within 2 ms of the wall clock. */
  #now(): number {
    const elapsed = this.#clock.monotonic();
    const offset = this.#clock.now() - elapsed;
    if (Math.abs(offset - this.#offset) > 2) this.#offset = offset;
    return elapsed + this.#offset;
  }
}

/** A span that ends once: the first end counts. */
export class OpenSpan {
  readonly #span: Span;
  readonly #startTime: number;
  readonly #startedAt: number;
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  #hasEnded = false;

  constructor(span: Span, startTime: number, clock: Clock, onEnd: () => void) {
    this.#span = span;
    this.#startTime = startTime;
    this.#startedAt = clock.monotonic();
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  get context(): SpanContext {
    return this.#span.spanContext();
  }

  /** Whether it is sent when it ends. What costs time is only collected then. */
  get isSampled(): boolean {
    return this.#span.isRecording();
  }

  /** @param errorType why it failed. Undefined if it did not. */
  end(attributes: Attributes, errorType?: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#onEnd();
    this.#span.setAttributes(attributes);
    if (errorType !== undefined) this.#span.setAttribute('error.type', errorType).setStatus({ code: SpanStatusCode.ERROR });
    this.#span.end(this.#startTime + this.#clock.monotonic() - this.#startedAt);
  }
}
