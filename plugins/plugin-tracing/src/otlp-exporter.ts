import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { type Clock, parseDuration } from '@plugboard/kernel';
import type { TracingConfig } from './config.js';

/** Statuses after which the specification of OTLP asks for the same batch again. */
const RETRYABLE: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const PROTOBUF = 'application/x-protobuf';
/** Bytes of an answer that are read. */
const MAX_ANSWER = 64 * 1024;

/** Why a batch was not taken. */
export interface SendFailure {
  readonly reason: string;
  /** Whether the same batch may be taken later. */
  readonly retryable: boolean;
}

/** Sends batches of spans: OTLP over HTTP, as protobuf. */
export class OtlpExporter {
  readonly #url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #timeout: number;
  readonly #clock: Clock;

  constructor({ endpoint, headers, timeout }: TracingConfig, clock: Clock) {
    this.#url = `${endpoint.endsWith('/') ? endpoint.slice(0, -1) : endpoint}/v1/traces`;
    const own = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
    this.#headers = { 'user-agent': 'plugboard', ...Object.fromEntries(own), 'content-type': PROTOBUF };
    this.#timeout = parseDuration(timeout);
    this.#clock = clock;
  }

  /** Returns undefined if the receiver has taken the batch. Never rejects. */
  async send(spans: readonly ReadableSpan[], signal: AbortSignal): Promise<SendFailure | undefined> {
    const late = new AbortController();
    const timer = this.#clock.after(this.#timeout, () => late.abort(new Error(`no answer for ${this.#timeout / 1000} s`)));
    let body: Uint8Array | undefined;
    try {
      body = ProtobufTraceSerializer.serializeRequest([...spans]);
      const response = await fetch(this.#url, {
        method: 'POST',
        headers: this.#headers,
        body: body ?? null,
        redirect: 'error', // the headers are for this receiver
        signal: AbortSignal.any([signal, late.signal]),
      });
      return response.ok ? await rejectionIn(response) : await refusalOf(response);
    } catch (error) {
      return { reason: reasonOf(error), retryable: body !== undefined };
    } finally {
      timer.cancel();
    }
  }
}

async function refusalOf(response: Response): Promise<SendFailure> {
  await response.body?.cancel();
  return { reason: `HTTP ${response.status}`, retryable: RETRYABLE.has(response.status) };
}

/** A receiver may take a batch and reject some of its spans. */
async function rejectionIn(response: Response): Promise<SendFailure | undefined> {
  const type = response.headers.get('content-type') ?? '';
  const answer = await answerOf(response);
  if (type.startsWith('text/html')) return { reason: 'it answered with a web page', retryable: false };
  const rejected = type.startsWith(PROTOBUF) ? rejectedSpans(answer) : 0;
  return rejected > 0 ? { reason: `it rejected ${rejected} spans of a batch`, retryable: false } : undefined;
}

/** An answer that cannot be read does not send the batch again. */
function rejectedSpans(answer: Uint8Array): number {
  try {
    return Number(ProtobufTraceSerializer.deserializeResponse(answer).partialSuccess?.rejectedSpans ?? 0);
  } catch {
    return 0;
  }
}

async function answerOf(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_ANSWER) return new Uint8Array();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The deepest cause says what happened: `fetch failed` does not. */
function reasonOf(error: unknown): string {
  let deepest = error;
  while (deepest instanceof Error && deepest.cause instanceof Error) deepest = deepest.cause;
  const { code, message } = deepest as { readonly code?: unknown; readonly message?: unknown };
  return typeof code === 'string' ? code : String(message);
}
