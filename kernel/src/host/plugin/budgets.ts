import type { Clock } from '../base/ambient.js';
import { Budget, type BudgetOptions, type BudgetReport, heapLimit } from '../base/budget.js';
import { TimeSlices } from '../base/time-slices.js';
import type { Logger } from '../log/log.js';

/** Milliseconds between two log lines about the same budget. */
const REMINDER = 60_000;

/**
 * The budgets of a server. Operators see them in the log: once a minute while one refuses
 * something, and all of them on SIGUSR2.
 *
 * @public
 */
export class Budgets {
  /**
   * The memory of the process that the work for callers may take, shared by everything that holds
   * some for them: half of the heap, unless `limits.memory` says otherwise.
   */
  readonly memory: Budget;
  /** The time of the event loop, shared by callers. */
  readonly time: TimeSlices;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** By setting and name: a reload creates the budgets of an entry that it replaces again. */
  readonly #budgets = new Map<string, Budget>();
  readonly #reported = new Map<Budget, number>();

  constructor(clock: Clock, log: Logger) {
    this.#clock = clock;
    this.#log = log;
    this.time = new TimeSlices(clock);
    this.memory = this.create({
      name: 'memory of callers',
      unit: 'bytes',
      limit: Math.floor(heapLimit() / 2),
      setting: 'limits.memory',
    });
  }

  /** Adds a budget. Plugins call it while they are registered. */
  create(options: BudgetOptions): Budget {
    const budget = new Budget(options, (refusing) => this.#onRefused(refusing));
    this.add(budget);
    return budget;
  }

  /** Adds a budget that the host owns. */
  add(budget: Budget): void {
    const { setting, name } = budget.report;
    this.#budgets.set(`${setting} ${name}`, budget);
  }

  /** The state of every budget. */
  reports(): readonly BudgetReport[] {
    return [...this.#budgets.values()].map(({ report }) => report);
  }

  #onRefused(budget: Budget): void {
    const now = this.#clock.monotonic();
    if (now - (this.#reported.get(budget) ?? Number.NEGATIVE_INFINITY) < REMINDER) return;
    this.#reported.set(budget, now);
    const { name, setting } = budget.report;
    this.#log.warn({ budget: budget.report }, `limit reached: ${name}; raise ${setting} if this is legitimate load`);
  }
}
