import { Counter, exponentialBuckets, Gauge, Histogram, Registry } from 'prom-client';
import { type Labels, LabelValues } from './label-values.js';

/** Seconds of a model's answer, as the GenAI conventions prescribe them: 0.01 to 81.92. */
const CALL_SECONDS = exponentialBuckets(0.01, 2, 14);
/** Seconds of a turn, which has several calls: 0.05 to 409.6. */
const TURN_SECONDS = exponentialBuckets(0.05, 2, 14);
/** Seconds of a request, as the HTTP conventions advise them, and of an answer of an agent. */
const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120, 300];
/** Seconds of a call of the store, whose limit is 30: 0.0005 to 32.768. */
const STORE_SECONDS = exponentialBuckets(0.0005, 4, 9);
/** Calls in one turn. */
const CALLS = [0, 1, 2, 4, 8, 16, 32, 64];

/** What says which model was called. */
const MODEL = ['gen_ai_operation_name', 'gen_ai_provider_name', 'gen_ai_request_model'];

/**
 * Everything that is exported, but prom-client's own metrics. Names and labels are those of the
 * OpenTelemetry conventions for HTTP and GenAI, with `_` for `.`, and ours begin with `plugboard_`.
 * No session, user, token, request or path is a label.
 */
export class Instruments {
  readonly registry = new Registry();
  readonly #values = new LabelValues();

  readonly requests = this.#histogram('http_server_request_duration_seconds', 'Duration of HTTP requests', REQUEST_SECONDS, [
    'http_request_method',
    'http_route',
    'http_response_status_code',
    'error_type',
  ]);

  readonly turns = this.#counter('plugboard_turns_total', 'Turns that ended, by finish reason or failure', ['agent', 'status']);
  readonly turnQueue = this.#histogram('plugboard_turn_queue_seconds', 'Time that turns waited before they ran', CALL_SECONDS, [
    'agent',
  ]);
  readonly turnDuration = this.#histogram('gen_ai_invoke_agent_duration_seconds', 'Duration of turns', TURN_SECONDS, [
    'gen_ai_agent_name',
    'error_type',
  ]);
  readonly turnInferences = this.#histogram('gen_ai_invoke_agent_inference_calls', 'Model calls of a turn', CALLS, [
    'gen_ai_agent_name',
  ]);
  readonly turnTools = this.#histogram('gen_ai_invoke_agent_tool_calls', 'Tool calls of a turn', CALLS, ['gen_ai_agent_name']);

  readonly callDuration = this.#histogram(
    'gen_ai_client_inference_duration_seconds',
    'Duration of model calls, each attempt for itself',
    CALL_SECONDS,
    [...MODEL, 'error_type'],
  );
  readonly firstChunk = this.#histogram(
    'gen_ai_client_inference_time_to_first_chunk_seconds',
    'Time until the first part of a streamed answer of a model',
    CALL_SECONDS,
    MODEL,
  );
  readonly inputTokens = this.#tokens('input', 'Tokens of prompts, cached ones included');
  readonly outputTokens = this.#tokens('output', 'Tokens of answers, reasoning included');
  readonly cacheReadTokens = this.#tokens('cache_read_input', 'Tokens of prompts that the model server had cached');
  readonly cacheWriteTokens = this.#tokens('cache_write_input', 'Tokens of prompts that the model server put into its cache');
  readonly reasoningTokens = this.#tokens('reasoning_output', 'Tokens of answers spent on reasoning');

  readonly toolDuration = this.#histogram('gen_ai_execute_tool_duration_seconds', 'Duration of tool calls', CALL_SECONDS, [
    'gen_ai_tool_name',
    'error_type',
  ]);
  readonly abandonedTools = this.#counter('plugboard_tools_abandoned_total', 'Tools that ran on after they were aborted', [
    'entry',
  ]);

  readonly storeDuration = this.#histogram(
    'plugboard_store_operation_seconds',
    'Duration of calls of the session store',
    STORE_SECONDS,
    ['operation', 'error_type'],
  );

  readonly cost = this.#counter('plugboard_cost_total', 'Cost of model calls, in the currency', ['agent', 'model', 'currency']);
  readonly unpricedCalls = this.#counter('plugboard_unpriced_calls_total', 'Model calls without a price', [
    'agent',
    'model',
    'currency',
  ]);

  /** Adds to a counter. A negative or infinite amount, as a server may report it, adds nothing. */
  add(counter: Counter, labels: Labels, amount = 1): void {
    if (amount > 0 && Number.isFinite(amount)) counter.inc(this.#values.bound(labels), amount);
  }

  /** Observes a value. */
  observe(histogram: Histogram, labels: Labels, value: number): void {
    if (value >= 0 && Number.isFinite(value)) histogram.observe(this.#values.bound(labels), value);
  }

  /** A gauge whose values are read when the page is. */
  gauge(name: string, help: string, labelNames: readonly string[], read: () => Iterable<readonly [Labels, number]>): void {
    const collect = (gauge: Gauge) => {
      gauge.reset();
      for (const [labels, value] of read()) gauge.inc(this.#values.bound(labels), value);
    };
    new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      registers: [this.registry],
      collect() {
        collect(this);
      },
    });
  }

  /** A counter whose values are read when the page is. */
  total(name: string, help: string, labelNames: readonly string[], read: () => Iterable<readonly [Labels, number]>): void {
    const collect = (counter: Counter) => {
      counter.reset();
      for (const [labels, value] of read()) counter.inc(this.#values.bound(labels), value);
    };
    new Counter({
      name,
      help,
      labelNames: [...labelNames],
      registers: [this.registry],
      collect() {
        collect(this);
      },
    });
  }

  #counter(name: string, help: string, labelNames: readonly string[]): Counter {
    return new Counter({ name, help, labelNames: [...labelNames], registers: [this.registry] });
  }

  #histogram(name: string, help: string, buckets: readonly number[], labelNames: readonly string[]): Histogram {
    return new Histogram({ name, help, buckets: [...buckets], labelNames: [...labelNames], registers: [this.registry] });
  }

  #tokens(kind: string, help: string): Counter {
    return this.#counter(`gen_ai_client_inference_usage_${kind}_tokens_total`, help, [...MODEL, 'gen_ai_token_modality']);
  }
}
