import type { PluginContext, PluginState } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import type { BudgetSettings } from '../config.js';
import { dayOf, type Period, periodOf } from '../ledger/periods.js';
import type { SharedSums } from '../ledger/shared-sums.js';
import { addSums, NO_SUMS, type Sums } from '../ledger/sums.js';
import { digestOf, type RowLabels, type UsageRows } from '../ledger/usage-rows.js';
import { moneyOf, textOf } from '../money/money.js';

/** Milliseconds that a counter is kept after its period: the clocks of servers differ. */
const KEEP_AFTER = 2 * 24 * 3_600_000;
const COUNTERS = 'spent/';
const MARKERS = 'budget/';
/** Counters that are remembered as spent, to log each once. */
const MAX_LOGGED = 1_000;

/** The caller and the agent of a call. */
export type Spender = Pick<RowLabels, 'project' | 'token' | 'agent'>;

/** How a budget is doing. */
export interface BudgetState {
  readonly settings: BudgetSettings;
  readonly spent: bigint;
  readonly left: bigint;
  /** Milliseconds since 1970. Undefined: never. */
  readonly resetsAt: number | undefined;
}

/** By new budget and counter: what calls cost before the budget was added. */
export type EarlierSums = ReadonlyMap<SpendingBudget, ReadonlyMap<string, Sums>>;

/** One budget of the file. */
export class SpendingBudget {
  readonly settings: BudgetSettings;
  readonly amount: bigint;
  /** The same as long as it covers the same: a changed amount keeps what was spent. */
  readonly id: string;
  readonly #currency: string;

  constructor(settings: BudgetSettings, currency: string) {
    const { amount, per, project, agent, token, each } = settings;
    this.settings = settings;
    this.amount = moneyOf(amount);
    this.id = digestOf([per, project, agent, token, each, currency]);
    this.#currency = currency;
  }

  covers({ project, token, agent }: Spender): boolean {
    const { settings } = this;
    return (
      (settings.project === undefined || settings.project === project) &&
      (settings.agent === undefined || settings.agent === agent) &&
      (settings.token === undefined || settings.token === token?.id || settings.token === token?.name)
    );
  }

  /** Whether the money of a row counts in it. */
  isIn(labels: RowLabels): boolean {
    return labels.currency === this.#currency && this.covers(labels);
  }

  /** The key of what was spent in a period. */
  counterOf({ name }: Period, token: RowLabels['token']): string {
    return `${COUNTERS}${this.id}/${name}${this.settings.each === 'token' ? `/${digestOf([token?.id])}` : ''}`;
  }

  /** `10 USD per day for the project acme` */
  toString(): string {
    const { per, project, agent, token, each } = this.settings;
    const of = [
      project !== undefined && `the project ${project}`,
      agent !== undefined && `the agent ${agent}`,
      token !== undefined && `the token ${token}`,
      each !== undefined && 'each token',
    ].filter((part) => part !== false);
    const period = per === 'total' ? '' : ` per ${per}`;
    return `${textOf(this.amount)} ${this.#currency}${period}${of.length > 0 ? ` for ${of.join(' and ')}` : ''}`;
  }
}

/**
 * The budgets of the file. Each has counters in the shared sums, one for a period, or for a period
 * and a token.
 */
export class SpendingBudgets {
  readonly #budgets: readonly SpendingBudget[];
  readonly #sums: SharedSums;
  readonly #clock: PluginContext['clock'];
  readonly #log: PluginContext['log'];
  /** Where the budgets are in the file. */
  readonly #setting: string;
  readonly #logged = new Set<string>();

  constructor(
    budgets: readonly SpendingBudget[],
    sums: SharedSums,
    { entry, clock, log }: Pick<PluginContext, 'entry' | 'clock' | 'log'>,
  ) {
    this.#budgets = budgets;
    this.#sums = sums;
    this.#clock = clock;
    this.#log = log;
    this.#setting = `${entry}.budgets`;
  }

  /** What the period of each new budget has had so far: a new one does not begin with nothing. */
  async earlier(state: PluginState, rows: UsageRows): Promise<EarlierSums> {
    const earlier = new Map<SpendingBudget, ReadonlyMap<string, Sums>>();
    for (const budget of this.#budgets) {
      if ((await state.get(markerOf(budget))) === undefined) earlier.set(budget, await this.#earlierOf(budget, rows));
    }
    return earlier;
  }

  /** Counts what new budgets have had, and forgets budgets that are gone. */
  async begin(state: PluginState, earlier: EarlierSums): Promise<void> {
    for (const [budget, counters] of earlier) {
      // Of several servers that find a new budget, one counts.
      if (!(await state.compareAndSet(markerOf(budget), undefined, { budget: String(budget) }))) continue;
      for (const [counter, sums] of counters) this.#count(budget, counter, sums);
    }
    await this.#sums.write();
    const ids = new Set(this.#budgets.map(({ id }) => id));
    for (const { key } of await state.list(MARKERS)) {
      const id = key.slice(MARKERS.length);
      if (ids.has(id)) continue;
      await this.#sums.remove(`${COUNTERS}${id}/`);
      await state.delete(key);
    }
  }

  /** @throws TurnError `insufficient_quota` if a budget that covers the call is spent. */
  async assertLeft(spender: Spender): Promise<void> {
    if (this.#budgets.length === 0) return;
    const now = this.#clock.now();
    for (const budget of this.#budgets) {
      if (!budget.covers(spender)) continue;
      const period = periodOf(budget.settings.per, now);
      const counter = budget.counterOf(period, spender.token);
      const { cost } = await this.#sums.of(counter);
      if (cost < budget.amount) continue;
      this.#logOnce(counter, budget, cost);
      throw spent(budget, period, now, this.#setting);
    }
  }

  /** Counts a call. */
  add(spender: Spender, sums: Sums): void {
    const now = this.#clock.now();
    for (const budget of this.#budgets) {
      if (!budget.covers(spender)) continue;
      this.#count(budget, budget.counterOf(periodOf(budget.settings.per, now), spender.token), sums);
    }
  }

  /** @param token whose share of budgets for each token is meant. */
  async states(which: (budget: SpendingBudget) => boolean, token: RowLabels['token']): Promise<readonly BudgetState[]> {
    const now = this.#clock.now();
    return Promise.all(
      this.#budgets.filter(which).map(async (budget) => {
        const period = periodOf(budget.settings.per, now);
        const { cost } = await this.#sums.of(budget.counterOf(period, token));
        const left = cost < budget.amount ? budget.amount - cost : 0n;
        return { settings: budget.settings, spent: cost, left, resetsAt: period.end };
      }),
    );
  }

  async #earlierOf(budget: SpendingBudget, rows: UsageRows): Promise<ReadonlyMap<string, Sums>> {
    const now = this.#clock.now();
    const period = periodOf(budget.settings.per, now);
    const counters = new Map<string, Sums>();
    for await (const { labels, sums } of rows.between(period.from ?? '', dayOf(now))) {
      if (!budget.isIn(labels)) continue;
      const counter = budget.counterOf(period, labels.token);
      counters.set(counter, addSums(counters.get(counter) ?? NO_SUMS, sums));
    }
    return counters;
  }

  #count({ settings }: SpendingBudget, counter: string, sums: Sums): void {
    const now = this.#clock.now();
    const { end } = periodOf(settings.per, now);
    this.#sums.add(counter, sums, { expiresIn: end === undefined ? undefined : end - now + KEEP_AFTER });
  }

  #logOnce(counter: string, budget: SpendingBudget, cost: bigint): void {
    if (this.#logged.has(counter) || this.#logged.size >= MAX_LOGGED) return;
    this.#logged.add(counter);
    this.#log.warn({ budget: String(budget), spent: textOf(cost) }, 'a budget is spent: calls that it covers are refused');
  }
}

function markerOf({ id }: SpendingBudget): string {
  return `${MARKERS}${id}`;
}

function spent(budget: SpendingBudget, { end }: Period, now: number, setting: string): TurnError {
  const next = end === undefined ? 'The operator can' : `It begins again at ${new Date(end).toISOString()}; the operator can`;
  const message = `The budget of ${budget} is spent. ${next} raise \`${setting}\`.`;
  return new TurnError('insufficient_quota', message, end === undefined ? {} : { retryAfter: Math.ceil((end - now) / 1000) });
}
