import type { Clock, Extensions, ModelConnector, ModelEvent } from '@plugboard/kernel';
import { type ModelCall, type ModelInterceptor, TurnError, type Usage } from '@plugboard/kernel/contracts';
import { errorTypeOf } from './error-type.js';
import type { Instruments } from './instruments.js';
import type { Labels } from './label-values.js';
import type { RunningTurns } from './running-turns.js';

/** Measures the calls of models, each attempt for itself. */
export class ModelCalls {
  readonly #instruments: Instruments;
  readonly #turns: RunningTurns;
  readonly #clock: Clock;
  readonly #models: Extensions<ModelConnector>;

  constructor(instruments: Instruments, turns: RunningTurns, clock: Clock, models: Extensions<ModelConnector>) {
    this.#instruments = instruments;
    this.#turns = turns;
    this.#clock = clock;
    this.#models = models;
  }

  readonly intercept: ModelInterceptor = (call, next) => this.#measure(call, next(call));

  async *#measure(call: ModelCall, answer: AsyncIterable<readonly ModelEvent[]>): AsyncGenerator<readonly ModelEvent[]> {
    const began = this.#clock.monotonic();
    const model = {
      gen_ai_operation_name: 'chat',
      gen_ai_provider_name: this.#models.get(call.connection)?.provider ?? '_OTHER',
      gen_ai_request_model: call.model,
    };
    let first: number | undefined;
    let usage: Usage | undefined;
    let hasEnded = false;
    let failure = 'cancelled'; // its reader left
    let isRefused = false;
    try {
      for await (const batch of answer) {
        first ??= this.#clock.monotonic();
        for (const event of batch) {
          if (event.type === 'usage') usage = event.usage;
          else if (event.type === 'end') hasEnded = true;
        }
        yield batch;
      }
      failure = 'model_failed'; // unless it had an end
    } catch (error) {
      failure = errorTypeOf(error, 'crashed');
      isRefused = error instanceof TurnError && first === undefined && !call.signal.aborted;
      throw error;
    } finally {
      // After an abort, errors are consequences of it.
      if (call.signal.aborted) failure = errorTypeOf(call.signal.reason, 'crashed');
      const error_type = hasEnded ? undefined : failure;
      // What an inner interceptor refused, such as one for budgets, was not sent.
      if (!isRefused) this.#observe(call, { ...model, error_type }, began, first);
      if (usage) this.#addTokens(model, usage);
    }
  }

  #observe({ turnId, request }: ModelCall, { error_type, ...model }: Labels, began: number, first: number | undefined): void {
    const seconds = (at: number) => (at - began) / 1000;
    const counts = this.#turns.get(turnId);
    if (counts) counts.inferences++;
    const { callDuration, firstChunk } = this.#instruments;
    this.#instruments.observe(callDuration, { ...model, error_type }, seconds(this.#clock.monotonic()));
    if (first !== undefined && request.incremental) this.#instruments.observe(firstChunk, model, seconds(first));
  }

  #addTokens(model: Labels, usage: Usage): void {
    const labels = { ...model, gen_ai_token_modality: 'unknown' };
    const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = this.#instruments;
    this.#instruments.add(inputTokens, labels, usage.promptTokens);
    this.#instruments.add(outputTokens, labels, usage.completionTokens);
    this.#instruments.add(cacheReadTokens, labels, usage.cachedTokens);
    this.#instruments.add(cacheWriteTokens, labels, usage.cacheWriteTokens);
    this.#instruments.add(reasoningTokens, labels, usage.reasoningTokens);
  }
}
