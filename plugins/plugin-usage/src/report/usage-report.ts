import { addSums, NO_SUMS, type Sums } from '../ledger/sums.js';
import type { RowLabels } from '../ledger/usage-rows.js';
import { textOf } from '../money/money.js';
import type { UsageKey } from './usage-query.js';

/** Bytes that a row of a report takes. */
const ROW_BYTES = 1_024;

interface Group {
  readonly labels: RowLabels;
  sums: Sums;
}

/** Adds rows up by some of their keys. */
export class UsageReport {
  readonly #by: readonly UsageKey[];
  readonly #currency: string;
  readonly #reserve: (bytes: number) => void;
  readonly #groups = new Map<string, Group>();
  #total = NO_SUMS;

  /** @param reserve takes the memory of a row, before it is held. May throw. */
  constructor(by: readonly UsageKey[], currency: string, reserve: (bytes: number) => void) {
    this.#by = by;
    this.#currency = currency;
    this.#reserve = reserve;
  }

  add(labels: RowLabels, sums: Sums): void {
    // Amounts in the currency that the file had before cannot be added to these.
    const own = labels.currency === this.#currency ? sums : { ...sums, cost: 0n, unpriced: sums.calls };
    const key = this.#by.map((name) => partOf(labels, name)).join('\0');
    const group = this.#groups.get(key);
    if (group) group.sums = addSums(group.sums, own);
    else {
      this.#reserve(ROW_BYTES);
      this.#groups.set(key, { labels, sums: own });
    }
    this.#total = addSums(this.#total, own);
  }

  /** The rows in the order of their keys. */
  get rows(): readonly object[] {
    const sorted = [...this.#groups].sort(([a], [b]) => (a < b ? -1 : 1));
    return sorted.map(([, { labels, sums }]) => ({
      ...Object.fromEntries(this.#by.map((name) => [name, labels[name]])),
      ...bodyOf(sums),
    }));
  }

  get total(): object {
    return bodyOf(this.#total);
  }
}

function partOf(labels: RowLabels, name: UsageKey): string {
  return name === 'token' ? (labels.token?.id ?? '') : labels[name];
}

function bodyOf(sums: Sums) {
  return {
    calls: sums.calls,
    input_tokens: sums.input,
    cached_tokens: sums.cached,
    cache_write_tokens: sums.cacheWrite,
    output_tokens: sums.output,
    reasoning_tokens: sums.reasoning,
    cost: textOf(sums.cost),
    unpriced_calls: sums.unpriced,
    estimated_calls: sums.estimated,
  };
}
