import type { Tracer } from '@opentelemetry/api';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { ParentBasedSampler, TraceIdRatioBasedSampler, TracerProvider } from '@opentelemetry/sdk-trace';
import { type Lifecycle, ModelConnectors, type PluginContext } from '@plugboard/kernel';
import type { ModelInterceptor, Reconfiguration } from '@plugboard/kernel/contracts';
import type { TracingConfig } from './config.js';
import { ModelSpans } from './model-spans.js';
import { OpenSpans } from './open-spans.js';
import { OtlpExporter } from './otlp-exporter.js';
import { RequestSpans } from './request-spans.js';
import { SpanQueue } from './span-queue.js';
import { TurnSpans } from './turn-spans.js';

/**
 * Traces what the server does.
 *
 * It has a tracer provider of its own and registers nothing globally: another entry, or a program
 * that embeds the server, may have theirs.
 */
export class Tracing implements Lifecycle<TracingConfig> {
  /** Traces requests to models. */
  readonly intercept: ModelInterceptor;
  readonly #context: PluginContext<TracingConfig>;
  readonly #queue: SpanQueue;
  readonly #spans: OpenSpans;
  readonly #requests: RequestSpans;
  readonly #turns: TurnSpans;
  #hasContent: boolean;
  #unwatch: (() => void)[] = [];

  constructor(context: PluginContext<TracingConfig>) {
    const { config, clock, log } = context;
    this.#context = context;
    this.#hasContent = config.content;
    this.#queue = new SpanQueue(new OtlpExporter(config, clock), clock, log);
    this.#spans = new OpenSpans(tracerOf(config, this.#queue), clock);
    this.#requests = new RequestSpans(this.#spans);
    const models = context.late(ModelConnectors);
    const shared = { spans: this.#spans, models, hasContent: () => this.#hasContent };
    this.#turns = new TurnSpans({ ...shared, requests: this.#requests });
    this.intercept = new ModelSpans({ ...shared, turns: this.#turns, clock }).intercept;
  }

  start(): void {
    const { log } = this.#context;
    this.#unwatch = [this.#requests.watch(log), this.#turns.watch(log)];
  }

  /** Spans that have begun end as they were, and go to the new receiver. */
  reconfigure({ config }: Reconfiguration<TracingConfig>): () => void {
    const tracer = tracerOf(config, this.#queue);
    const exporter = new OtlpExporter(config, this.#context.clock);
    return () => {
      this.#hasContent = config.content;
      this.#spans.tracer = tracer;
      this.#queue.exporter = exporter;
    };
  }

  health(): ReturnType<NonNullable<Lifecycle['health']>> {
    const { failure } = this.#queue;
    if (failure === undefined) return { state: 'ok' };
    return { state: 'degraded', reason: `the trace receiver does not take spans: ${failure}` };
  }

  async stop(_signal: AbortSignal, within?: number): Promise<void> {
    for (const unwatch of this.#unwatch.splice(0)) unwatch();
    this.#spans.endAll('stopped');
    await this.#queue.close(within);
  }
}

function tracerOf({ sampleRatio, resource }: TracingConfig, queue: SpanQueue): Tracer {
  const provider = new TracerProvider({
    resource: defaultResource().merge(resourceFromAttributes({ 'service.name': 'plugboard', ...resource })),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
    spanProcessors: [queue],
  });
  return provider.getTracer('@plugboard/plugin-tracing');
}
