import type { Clock, Extensions, Principal } from '@plugboard/kernel';
import { type AgentRuntime, callerId, DEFAULT_PROJECT, missingScope, OPEN } from '@plugboard/kernel/contracts';
import { protocolRoute } from '@plugboard/openai-protocol';
import type { HttpReply, HttpRequest, HttpRoute } from '@plugboard/transport-http';
import type { BudgetState, SpendingBudget } from '../charging/budgets.js';
import { type Charging, tokenOf } from '../charging/charging.js';
import type { RowLabels, UsageRows } from '../ledger/usage-rows.js';
import { moneyOf, textOf } from '../money/money.js';
import { usageQueryOf } from './usage-query.js';
import { UsageReport } from './usage-report.js';

/** `GET /v1/usage`: what calls took, and how budgets are doing, as far as the caller may see it. */
export class UsageRoute {
  readonly #charging: Charging;
  readonly #rows: UsageRows;
  readonly #runtimes: Extensions<AgentRuntime>;
  readonly #clock: Clock;

  constructor(charging: Charging, rows: UsageRows, runtimes: Extensions<AgentRuntime>, clock: Clock) {
    this.#charging = charging;
    this.#rows = rows;
    this.#runtimes = runtimes;
    this.#clock = clock;
  }

  get route(): HttpRoute {
    return protocolRoute({
      method: 'GET',
      path: '/v1/usage',
      access: ['models:read'],
      body: 'none',
      startsWork: false,
      handle: (request) => this.#handle(request),
    });
  }

  async #handle({ query, principal, account }: HttpRequest): Promise<HttpReply> {
    const { from, to, by } = usageQueryOf(query, this.#clock.now());
    const { currency, budgets } = this.#charging.rates;
    const report = new UsageReport(by, currency, (bytes) => account.require(bytes));
    const sees = rowsSeenBy(principal);
    for await (const { labels, sums } of this.#rows.between(from, to)) if (sees(labels)) report.add(labels, sums);
    const states = await budgets.states(this.#budgetsSeenBy(principal), tokenOf(principal));
    const { rows: data, total } = report;
    const body = { object: 'usage', currency, from, to, data, total, budgets: states.map(bodyOf) };
    return { status: 200, headers: { 'cache-control': 'no-store' }, body };
  }

  /** Those that cover the caller with any agent; with `admin` those of its project too. */
  #budgetsSeenBy(principal: Principal): (budget: SpendingBudget) => boolean {
    if (seesAll(principal)) return () => true;
    const { project } = principal;
    const token = tokenOf(principal);
    const agents = new Set(
      this.#runtimes
        .one()
        .list(principal)
        .map(({ name }) => name),
    );
    return (budget) => {
      const { agent = '', project: own } = budget.settings;
      if (isAdmin(principal) && own === project) return true;
      return budget.covers({ project, token, agent }) && (agent === '' || agents.has(agent));
    };
  }
}

function isAdmin(principal: Principal): boolean {
  return missingScope(principal, ['admin']) === undefined;
}

/** On an open server every caller; else an admin of the project that reaches everything. */
function seesAll(principal: Principal): boolean {
  return principal === OPEN || (isAdmin(principal) && principal.project === DEFAULT_PROJECT);
}

/** A caller sees its own rows; with `admin` those of its project. */
function rowsSeenBy(principal: Principal): (row: RowLabels) => boolean {
  if (seesAll(principal)) return () => true;
  const { project } = principal;
  if (isAdmin(principal)) return (row) => row.project === project;
  const id = callerId(principal); // undefined: tokens without a subject share theirs
  return (row) => id !== undefined && row.project === project && row.token?.id === id;
}

function bodyOf({ settings, spent, left, resetsAt }: BudgetState) {
  return {
    ...settings,
    amount: textOf(moneyOf(settings.amount)),
    spent: textOf(spent),
    left: textOf(left),
    resets_at: resetsAt === undefined ? null : new Date(resetsAt).toISOString(),
  };
}
