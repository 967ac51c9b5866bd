import type { Usage } from '@plugboard/kernel/contracts';
import type { Outcome } from './outcome.js';

/** The fields of a response that never change. */
export interface ResponseHead {
  /** `resp_` and random characters. */
  readonly id: string;
  /** Unix time, seconds. */
  readonly createdAt: number;
  /** The agent as the request named it. */
  readonly model: string;
  /** The agent that answers: the default one if `model` matched nothing. */
  readonly agent: string;
  /** The fields that repeat the request: `echoOf`. */
  readonly echo: object;
}

export type ResponseStatus = 'queued' | 'in_progress' | Outcome['status'];

/**
 * Renders the `response` object of one response, in any state. The constant fields are rendered
 * once.
 */
export class ResponseObject {
  readonly #before: string;
  readonly #after: string;

  constructor({ id, createdAt, model, agent, echo }: ResponseHead) {
    const names = `"model":${JSON.stringify(model)},"agent":${JSON.stringify(agent)}`;
    this.#before = `{"id":"${id}","object":"response","created_at":${createdAt},${names}`;
    this.#after = `,${JSON.stringify(echo).slice(1)}`;
  }

  /**
   * @param output the items as JSON, joined by commas. @param completedAt Unix time, seconds; null
   * unless it is completed.
   */
  json(status: ResponseStatus, output: string, outcome?: Outcome, completedAt: number | null = null): string {
    const details = outcome?.reason === undefined ? 'null' : `{"reason":"${outcome.reason}"}`;
    return (
      `${this.#before},"status":"${status}","completed_at":${completedAt},"incomplete_details":${details}` +
      `,"error":${JSON.stringify(outcome?.error ?? null)},"output":[${output}],"usage":${JSON.stringify(usageOf(outcome?.usage))}${this.#after}`
    );
  }
}

/** Token counts by the names of this protocol. */
export function usageOf(usage: Usage | undefined) {
  if (!usage) return null;
  const { promptTokens, completionTokens, cachedTokens, cacheWriteTokens, reasoningTokens } = usage;
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + completionTokens,
  };
}
