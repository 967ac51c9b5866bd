import { channel } from 'node:diagnostics_channel';
import type { Clock, Logger, ModelEvent, Principal } from '@plugboard/kernel';
import type { ModelCall } from '@plugboard/kernel/contracts';
import { dayOf } from '../ledger/periods.js';
import type { SharedSums } from '../ledger/shared-sums.js';
import type { Sums } from '../ledger/sums.js';
import type { RowLabels, UsageRows } from '../ledger/usage-rows.js';
import { AnswerMeter, type AnswerTokens } from '../money/answer-tokens.js';
import { textOf } from '../money/money.js';
import type { Prices } from '../money/prices.js';
import type { SpendingBudgets } from './budgets.js';

/** Charged calls: `{ agent, model, currency, cost }`; `cost` is decimal text, or undefined. */
const charges = channel('plugboard.charge');

/** What the file says, at one time. */
export interface Rates {
  readonly currency: string;
  readonly prices: Prices;
  readonly budgets: SpendingBudgets;
  /** Milliseconds. */
  readonly keep: number;
}

type Batches = AsyncIterable<readonly ModelEvent[]>;

/** Charges every answer of a model connection once, when it ends. */
export class Charging {
  /** A reload replaces them. Calls that are on their way keep their prices. */
  rates: Rates;
  readonly #rows: UsageRows;
  readonly #sums: SharedSums;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** The connections without a price that the log has named. */
  readonly #unpriced = new Set<string>();

  constructor(rates: Rates, rows: UsageRows, sums: SharedSums, clock: Clock, log: Logger) {
    this.rates = rates;
    this.#rows = rows;
    this.#sums = sums;
    this.#clock = clock;
    this.#log = log;
  }

  /** The interceptor. @throws TurnError `insufficient_quota` */
  async *intercept(call: ModelCall, next: (call: ModelCall) => Batches): Batches {
    const { rates } = this;
    const { agent, principal } = call;
    await rates.budgets.assertLeft({ project: principal.project, token: tokenOf(principal), agent });
    const meter = new AnswerMeter(call.request);
    let isCharged = false;
    const charge = () => {
      if (isCharged || !meter.hasBegun) return;
      isCharged = true;
      this.#charge(call, meter.tokens(), rates);
    };
    try {
      for await (const batch of next(call)) {
        meter.take(batch);
        if (meter.hasEnded) charge();
        yield batch;
      }
    } finally {
      charge(); // it broke off, or its reader left
    }
  }

  #charge({ agent, principal, connection }: ModelCall, tokens: AnswerTokens, { currency, prices, keep }: Rates): void {
    const cost = prices.costOf(connection, tokens);
    if (cost === undefined) this.#warn(connection);
    // While the store fails, memory is bounded: sums stay right, and further tokens have no name.
    const token = this.#sums.isFull ? null : tokenOf(principal);
    const spender = { project: principal.project, token, agent };
    const sums: Sums = {
      calls: 1,
      input: tokens.input,
      cached: tokens.cached,
      cacheWrite: tokens.cacheWrite,
      output: tokens.output,
      reasoning: tokens.reasoning,
      unpriced: cost === undefined ? 1 : 0,
      estimated: tokens.isEstimated ? 1 : 0,
      cost: cost ?? 0n,
    };
    this.#rows.add({ day: dayOf(this.#clock.now()), ...spender, model: connection, currency }, sums, keep);
    this.rates.budgets.add(spender, sums);
    if (charges.hasSubscribers) {
      charges.publish({ agent, model: connection, currency, cost: cost === undefined ? undefined : textOf(cost) });
    }
  }

  #warn(connection: string): void {
    if (this.#unpriced.has(connection)) return;
    this.#unpriced.add(connection);
    this.#log.warn({ connection }, 'a model connection has no price: its calls count tokens only; add it under "prices"');
  }
}

export function tokenOf({ tokenId, token }: Principal): RowLabels['token'] {
  return tokenId === undefined ? null : { id: tokenId, name: token ?? null };
}
