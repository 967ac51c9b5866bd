import { SpanKind } from '@opentelemetry/api';
import type { Clock, Extensions, ModelConnector, ModelEvent, ModelRequest } from '@plugboard/kernel';
import { isConversationId, type ModelCall, type ModelInterceptor, type Usage } from '@plugboard/kernel/contracts';
import { AnswerContent, requestContent } from './content.js';
import { errorType } from './error-type.js';
import { providerOf, usageAttributes } from './model-attributes.js';
import type { OpenSpan, OpenSpans } from './open-spans.js';
import { traceHeaders } from './trace-context.js';
import type { TracedTurn, TurnSpans } from './turn-spans.js';

type Batches = AsyncIterable<readonly ModelEvent[]>;

interface ModelSpansOptions {
  readonly spans: OpenSpans;
  readonly turns: TurnSpans;
  readonly models: Extensions<ModelConnector>;
  readonly clock: Clock;
  /** Whether spans contain prompts and answers. */
  readonly hasContent: () => boolean;
}

/** The spans of requests to models: one per attempt, of steps and summaries. */
export class ModelSpans {
  readonly #options: ModelSpansOptions;

  constructor(options: ModelSpansOptions) {
    this.#options = options;
  }

  readonly intercept: ModelInterceptor = (call, next) => {
    const turn = this.#options.turns.get(call.turnId);
    if (!turn) return next(call);
    const span = this.#start(call, turn);
    Object.assign(call.request.headers, traceHeaders(span.context));
    if (!span.isSampled) {
      span.end({});
      return next(call);
    }
    const { session } = call.request;
    turn.join(session !== undefined && isConversationId(session) ? session : undefined);
    turn.begin(span);
    return this.#watch(call, next(call), span, turn);
  };

  #start({ request, step, attempt, connection, model }: ModelCall, turn: TracedTurn): OpenSpan {
    const { spans, models } = this.#options;
    return spans.start(`chat ${model}`, {
      kind: SpanKind.CLIENT,
      parent: turn.span.context,
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': providerOf(models.get(connection)),
        'gen_ai.request.model': model,
        'gen_ai.request.stream': request.incremental,
        'gen_ai.request.max_tokens': numberIn(request, 'max_completion_tokens') ?? numberIn(request, 'max_tokens'),
        'gen_ai.request.temperature': numberIn(request, 'temperature'),
        'gen_ai.request.top_p': numberIn(request, 'top_p'),
        'plugboard.connection': connection,
        'plugboard.step': step,
        'plugboard.attempt': attempt,
      },
    });
  }

  /** Ends the span when the answer ends, fails, or its reader leaves. */
  async *#watch(
    { request, signal }: ModelCall,
    batches: Batches,
    span: OpenSpan,
    turn: TracedTurn,
  ): AsyncGenerator<readonly ModelEvent[]> {
    const { clock, hasContent } = this.#options;
    const startedAt = clock.monotonic();
    const content = hasContent() ? new AnswerContent() : undefined;
    let firstChunk: number | undefined;
    let usage: Usage | undefined;
    let reason: string | undefined;
    let failure: string | undefined;
    try {
      for await (const batch of batches) {
        firstChunk ??= (clock.monotonic() - startedAt) / 1000;
        for (const event of batch) {
          if (event.type === 'usage') usage = event.usage;
          else if (event.type === 'end') reason = event.reason;
          else content?.add(event);
        }
        yield batch;
      }
      failure = reason === undefined ? 'model_failed' : undefined; // it ended without an end
    } catch (error) {
      failure = errorType(error, signal);
      throw error;
    } finally {
      // A reader that leaves in the middle ends the generator here.
      if (reason === undefined) failure ??= signal.aborted ? errorType(signal.reason) : 'cancelled';
      if (usage) turn.addUsage(usage);
      const attributes = {
        ...usageAttributes(usage),
        ...(content && { ...requestContent(request.messages), ...content.attributes(reason) }),
        'gen_ai.response.finish_reasons': reason === undefined ? undefined : [reason],
        'gen_ai.response.time_to_first_chunk': request.incremental ? firstChunk : undefined,
      };
      turn.end(span, attributes, failure);
    }
  }
}

function numberIn({ params }: ModelRequest, name: string): number | undefined {
  const value = params[name];
  return typeof value === 'number' ? value : undefined;
}
