import type { UsageConfig } from '../config.js';
import type { AnswerTokens } from './answer-tokens.js';
import { millionthsOf } from './money.js';

/** What tokens of a connection cost: 10⁻¹² of the currency for one. */
interface Price {
  readonly input: bigint;
  readonly output: bigint;
  readonly cachedInput: bigint;
  readonly cacheWrite: bigint;
  readonly reasoning: bigint;
}

/** The prices of the file. */
export class Prices {
  readonly #prices: ReadonlyMap<string, Price>;

  constructor(settings: UsageConfig['prices']) {
    this.#prices = new Map(Object.entries(settings).map(([connection, price]) => [connection, priceOf(price)]));
  }

  /** What an answer costs (OB-9). Undefined if its connection has no price (OB-10). */
  costOf(connection: string, tokens: AnswerTokens): bigint | undefined {
    const price = this.#prices.get(connection);
    if (price === undefined) return undefined;
    const { input, cached, cacheWrite, output, reasoning } = tokens;
    return (
      BigInt(input - cached - cacheWrite) * price.input +
      BigInt(cached) * price.cachedInput +
      BigInt(cacheWrite) * price.cacheWrite +
      BigInt(output - reasoning) * price.output +
      BigInt(reasoning) * price.reasoning
    );
  }
}

function priceOf({ input, output, cachedInput = input, cacheWrite = input, reasoning = output }: UsageConfig['prices'][string]) {
  const one = (price: number) => millionthsOf(price) ?? 0n;
  return {
    input: one(input),
    output: one(output),
    cachedInput: one(cachedInput),
    cacheWrite: one(cacheWrite),
    reasoning: one(reasoning),
  };
}
