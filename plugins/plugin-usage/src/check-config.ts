import { type CheckContext, type ConfigProblem, parseDuration } from '@plugboard/kernel';
import { DEFAULT_PROJECT, suggestion } from '@plugboard/kernel/contracts';
import type { UsageConfig } from './config.js';
import { millionthsOf } from './money/money.js';

const TOO_PRECISE = 'has more than 6 decimals';
/** Milliseconds: a month, so that a new budget finds what its month has cost. */
const MIN_KEEP = 31 * 24 * 3_600_000;

/** Checks what the schema cannot express: decimals, and names of the rest of the file. */
export function checkConfig({ prices, budgets, keep }: UsageConfig, context: CheckContext): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const models = context.entries('models');
  const projects = [DEFAULT_PROJECT, ...context.entries('projects')];
  const agents = context.entries('agents');

  for (const [name, price] of Object.entries(prices)) {
    if (!models.includes(name)) {
      problems.push({ path: ['prices', name], message: `unknown model connection "${name}"${suggestion(name, models)}` });
    }
    for (const [tokens, value] of Object.entries(price)) {
      if (value !== undefined && millionthsOf(value) === undefined)
        problems.push({ path: ['prices', name, tokens], message: TOO_PRECISE });
    }
  }
  /** The first budget with these keys. */
  const seen = new Map<string, number>();
  for (const [index, { amount, per, project, agent, token, each }] of budgets.entries()) {
    const add = (key: string, message: string) => problems.push({ path: ['budgets', index, key], message });
    if (millionthsOf(amount) === undefined) add('amount', TOO_PRECISE);
    if (project !== undefined && !projects.includes(project)) {
      add('project', `unknown project "${project}"${suggestion(project, projects)}`);
    }
    if (agent !== undefined && !agents.includes(agent)) add('agent', `unknown agent "${agent}"${suggestion(agent, agents)}`);
    if (token !== undefined && each !== undefined) add('each', 'a budget of one token has no "each"; remove one of them');
    const covered = JSON.stringify([per, project, agent, token, each]);
    const first = seen.get(covered);
    if (first === undefined) seen.set(covered, index);
    else add('per', `budgets[${first}] covers the same calls in the same period; remove one of them`);
  }
  const disabled = context.disabled('models');
  const unpriced = models.filter((name) => !Object.hasOwn(prices, name) && !disabled.includes(name));
  if (budgets.length > 0 && unpriced.length > 0) {
    const names = unpriced.map((name) => `"${name}"`).join(', ');
    problems.push({ path: ['budgets'], message: `needs a price for every model connection; add ${names} under "prices"` });
  }
  if (parseDuration(keep) < MIN_KEEP) problems.push({ path: ['keep'], message: 'must be at least 31d' });
  return problems;
}
