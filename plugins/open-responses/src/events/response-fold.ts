import type { AgentEvent } from '@plugboard/kernel';
import type { Failure } from '@plugboard/kernel/contracts';
import type { AnswerFold } from '@plugboard/turn-routes';
import type { EndedResponse } from './replay.js';
import type { ResponseEncoder } from './response-encoder.js';

/** The answer of a response, as stored for repeated requests. */
export interface EndedAnswer {
  /** The model connection that answered first. */
  readonly connection: string | undefined;
  readonly response: EndedResponse;
}

/** Folds the events of a turn into the response at its end. */
export class ResponseFold implements AnswerFold<EndedAnswer> {
  readonly #encoder: ResponseEncoder;

  constructor(encoder: ResponseEncoder) {
    this.#encoder = encoder;
  }

  add(batch: readonly AgentEvent[]): void {
    this.#encoder.write(batch);
  }

  get end(): EndedAnswer | Failure | undefined {
    const { end, connection } = this.#encoder;
    return end && (end.failure ?? { connection, response: JSON.parse(end.response) as EndedResponse });
  }
}
