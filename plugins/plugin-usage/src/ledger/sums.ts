import { parseMoney, textOf } from '../money/money.js';

const COUNTS = ['calls', 'input', 'cached', 'cacheWrite', 'output', 'reasoning', 'unpriced', 'estimated'] as const;

/** What calls took together: numbers of calls and of tokens, and money. */
export interface Sums extends Readonly<Record<(typeof COUNTS)[number], number>> {
  readonly cost: bigint;
}

export const NO_SUMS: Sums = {
  calls: 0,
  input: 0,
  cached: 0,
  cacheWrite: 0,
  output: 0,
  reasoning: 0,
  unpriced: 0,
  estimated: 0,
  cost: 0n,
};

export function addSums(a: Sums, b: Sums): Sums {
  return {
    calls: a.calls + b.calls,
    input: a.input + b.input,
    cached: a.cached + b.cached,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    output: a.output + b.output,
    reasoning: a.reasoning + b.reasoning,
    unpriced: a.unpriced + b.unpriced,
    estimated: a.estimated + b.estimated,
    cost: a.cost + b.cost,
  };
}

/** Sums as JSON: counts of 0 are left out, money is decimal text. */
export type StoredSums = Readonly<Partial<Record<(typeof COUNTS)[number], number>>> & { readonly cost: string };

export function toStored(sums: Sums): StoredSums {
  const counts = COUNTS.flatMap((name) => (sums[name] === 0 ? [] : [[name, sums[name]]]));
  return { ...Object.fromEntries(counts), cost: textOf(sums.cost) };
}

export function fromStored({ cost, ...counts }: StoredSums): Sums {
  return { ...NO_SUMS, ...counts, cost: parseMoney(cost) };
}
