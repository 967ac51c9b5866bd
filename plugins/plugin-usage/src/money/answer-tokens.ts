import type { ModelEvent, ModelRequest } from '@plugboard/kernel';
import type { Usage } from '@plugboard/kernel/contracts';
import { estimateTokens } from '@plugboard/turn-routes';

/**
 * The tokens of one answer. `cached` and `cacheWrite` are parts of `input`, `reasoning` is one of
 * `output`.
 */
export interface AnswerTokens {
  readonly input: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly reasoning: number;
  /** Whether a count was estimated, or corrected. */
  readonly isEstimated: boolean;
}

/** No answer has more tokens of a kind: a larger count is not believed. */
const MAX_COUNT = 1_000_000_000;
const BYTES_PER_TOKEN = 4;

/** Reads along with one answer, and says what it took. */
export class AnswerMeter {
  /** Whether anything of the answer has arrived. */
  hasBegun = false;
  /** Whether it is complete. */
  hasEnded = false;
  readonly #request: ModelRequest;
  #usage: Usage | undefined;
  /** Bytes of what the model wrote. */
  #text = 0;
  #reasoning = 0;
  #calls = 0;
  /** Calls that are written in pieces; `tool-call` repeats them. */
  #pieces = 0;

  constructor(request: ModelRequest) {
    this.#request = request;
  }

  take(batch: readonly ModelEvent[]): void {
    for (const event of batch) {
      this.hasBegun = true;
      if (event.type === 'text') this.#text += Buffer.byteLength(event.text);
      else if (event.type === 'reasoning') this.#reasoning += Buffer.byteLength(event.text);
      else if (event.type === 'tool-call-delta') this.#pieces += Buffer.byteLength(event.arguments);
      else if (event.type === 'tool-call') this.#calls += Buffer.byteLength(event.arguments) + event.name.length;
      else if (event.type === 'usage') this.#usage = event.usage;
      else this.hasEnded = true;
    }
  }

  /**
   * The tokens, as the model server counted them. What it did not count, or cannot have counted, is
   * estimated (OB-12); parts that exceed their total count, and raise it (OB-9).
   */
  tokens(): AnswerTokens {
    const usage = this.#usage;
    const written = tokensIn(this.#text + this.#reasoning + Math.max(this.#calls, this.#pieces));
    const cached = counted(usage?.cachedTokens);
    const cacheWrite = counted(usage?.cacheWriteTokens);
    const reasoning = usage ? counted(usage.reasoningTokens) : tokensIn(this.#reasoning);
    // Every request has tokens: a count of 0 is none.
    const input = counted(usage?.promptTokens) || estimateTokens(this.#request.messages, this.#request.tools);
    const reported = counted(usage?.completionTokens);
    const output = this.hasEnded && reported > 0 ? reported : Math.max(reported, written);
    const isCounted =
      usage !== undefined && input === usage.promptTokens && output === usage.completionTokens && areCounts(usage);
    return {
      input: Math.max(input, cached + cacheWrite),
      cached,
      cacheWrite,
      output: Math.max(output, reasoning),
      reasoning,
      isEstimated: !this.hasEnded || !isCounted || cached + cacheWrite > input || reasoning > output,
    };
  }
}

function areCounts({ cachedTokens, cacheWriteTokens, reasoningTokens }: Usage): boolean {
  return [cachedTokens, cacheWriteTokens, reasoningTokens].every((count) => count === counted(count));
}

/** A count, or 0 for what cannot be one. */
function counted(count: number | undefined): number {
  return Number.isInteger(count) && Number(count) > 0 && Number(count) <= MAX_COUNT ? Number(count) : 0;
}

function tokensIn(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}
