import { type CommandAction, type CommandArguments, CommandError } from '@plugboard/kernel/contracts';
import { ChatError } from '../chat/conversation.js';
import { ServerClient, StatusError } from '../chat/server-client.js';
import { columnsOf, oneLine } from '../command/channel-options.js';

/** The answer of `GET /v1/usage`, as far as it is printed. */
interface UsageReport {
  readonly currency: string;
  readonly from: string;
  readonly to: string;
  readonly data: readonly UsageRow[];
  readonly total: UsageRow;
  readonly budgets: readonly Readonly<Record<string, string | null | undefined>>[];
}

type UsageRow = Readonly<Record<string, string | number | { readonly id: string; readonly name: string | null } | null>>;

/** The counts of a row, by the heading of their column. */
const COUNTS: Readonly<Record<string, string>> = {
  calls: 'calls',
  input: 'input_tokens',
  cached: 'cached_tokens',
  'cache write': 'cache_write_tokens',
  output: 'output_tokens',
  reasoning: 'reasoning_tokens',
  cost: 'cost',
  unpriced: 'unpriced_calls',
  estimated: 'estimated_calls',
};
const BUDGET = ['amount', 'per', 'project', 'agent', 'token', 'each', 'spent', 'left', 'resets_at'];
const QUERY = ['from', 'to', 'by'];

/** Prints what a running server has counted. */
export const usage: CommandAction = {
  summary: 'Prints the tokens, money and budgets of a running server',
  options: {
    url: {
      value: 'URL',
      required: true,
      description: 'the server, for example http://127.0.0.1:8080; its token is read from PLUGBOARD_TOKEN',
    },
    from: { value: 'DAY', description: 'the first day, such as 2026-11-01, in UTC; default: of the month' },
    to: { value: 'DAY', description: 'the last day; default: of this month' },
    by: { value: 'a,b', description: 'columns: day, project, token, agent, model; default: agent,model' },
    json: { description: 'print JSON' },
  },
  async run(args, terminal) {
    const report = await ask(args);
    if (args.has('json')) {
      terminal.print(JSON.stringify(report, undefined, 2));
      return 0;
    }
    const { currency, from, to, budgets } = report;
    terminal.print(`${from} to ${to} (UTC), ${currency}\n${tableOf(report, (args.text('by') ?? 'agent,model').split(','))}`);
    if (budgets.length > 0) {
      const rows = budgets.map((budget) => BUDGET.map((name) => oneLine(budget[name] ?? '')));
      terminal.print(`\n${columnsOf(['budget', ...BUDGET.slice(1, -1), 'resets at'], rows)}`);
    }
    return 0;
  },
};

/** @throws CommandError */
async function ask(args: CommandArguments): Promise<UsageReport> {
  const query = new URLSearchParams(
    QUERY.flatMap((name): [string, string][] => (args.has(name) ? [[name, args.text(name) ?? '']] : [])),
  );
  try {
    const client = new ServerClient(args.text('url') ?? '', process.env.PLUGBOARD_TOKEN || undefined);
    return await client.get<UsageReport>(query.size > 0 ? `/usage?${query}` : '/usage');
  } catch (error) {
    if (!(error instanceof ChatError)) throw error;
    const isMissing = error instanceof StatusError && error.status === 404;
    throw new CommandError(isMissing ? 'the server counts no usage: add "usage: {}" under "plugins" of its file' : error.message);
  }
}

function tableOf({ data, total }: UsageReport, by: readonly string[]): string {
  const keys = data.map((row) => by.map((name) => oneLine(nameOf(row[name]))));
  const counts = [...data, total].map((row) => Object.values(COUNTS).map((name) => countOf(name, row[name])));
  const rows = counts.map((cells, at) => [...(keys[at] ?? by.map((_, column) => (column === 0 ? 'total' : ''))), ...cells]);
  return columnsOf([...by, ...Object.keys(COUNTS)], rows);
}

function nameOf(value: UsageRow[string] | undefined): string {
  if (typeof value === 'object') return value === null ? '-' : (value.name ?? value.id);
  return String(value ?? '');
}

/** A column without any count is left out. */
function countOf(name: string, value: UsageRow[string] | undefined): string {
  const isAlways = name === 'calls' || name === 'cost';
  return value === 0 && !isAlways ? '' : String(value ?? '');
}
