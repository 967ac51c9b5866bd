import { AgentRuntimes, type Lifecycle, type PluginContext, parseDuration } from '@plugboard/kernel';
import type { Reconfiguration } from '@plugboard/kernel/contracts';
import { SpendingBudget, SpendingBudgets } from './charging/budgets.js';
import { Charging, type Rates } from './charging/charging.js';
import type { UsageConfig } from './config.js';
import { SharedSums } from './ledger/shared-sums.js';
import { UsageRows } from './ledger/usage-rows.js';
import { Prices } from './money/prices.js';
import { UsageRoute } from './report/usage-route.js';

/** An entry: its rows, and what the file says about prices and budgets. */
export class Usage implements Lifecycle<UsageConfig> {
  readonly charging: Charging;
  readonly route: UsageRoute['route'];
  readonly #ctx: PluginContext<UsageConfig>;
  readonly #sums: SharedSums;
  readonly #rows: UsageRows;

  constructor(ctx: PluginContext<UsageConfig>) {
    const { state, clock, ids, log } = ctx;
    this.#ctx = ctx;
    this.#sums = new SharedSums(state, clock, ids, log);
    this.#rows = new UsageRows(this.#sums);
    this.charging = new Charging(this.#ratesOf(ctx.config), this.#rows, this.#sums, clock, log);
    this.route = new UsageRoute(this.charging, this.#rows, ctx.late(AgentRuntimes), clock).route;
  }

  async start(): Promise<void> {
    const { budgets } = this.charging.rates;
    await budgets.begin(this.#ctx.state, await budgets.earlier(this.#ctx.state, this.#rows));
  }

  /** Prices and budgets change for later calls. */
  async reconfigure({ config }: Reconfiguration<UsageConfig>): Promise<() => void> {
    const { state, log } = this.#ctx;
    const rates = this.#ratesOf(config);
    const earlier = await rates.budgets.earlier(state, this.#rows);
    return () => {
      this.charging.rates = rates;
      rates.budgets.begin(state, earlier).catch((err) => log.error({ err }, 'what a new budget has had before is not counted'));
    };
  }

  health() {
    if (this.#sums.failure === undefined) return { state: 'ok' } as const;
    const reason = 'usage cannot be stored: it is in memory only; look at the session store';
    return { state: 'degraded', reason } as const;
  }

  async stop(): Promise<void> {
    await this.#sums.close();
  }

  #ratesOf({ currency, prices, budgets, keep }: UsageConfig): Rates {
    const { entry, clock, log } = this.#ctx;
    const own = budgets.map((settings) => new SpendingBudget(settings, currency));
    return {
      currency,
      prices: new Prices(prices),
      budgets: new SpendingBudgets(own, this.#sums, { entry, clock, log }),
      keep: parseDuration(keep),
    };
  }
}
