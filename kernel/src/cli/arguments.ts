import { parseArgs } from 'node:util';
import { nearest } from '../host/nearest.js';
import { type CliArguments, type CliCommand, type CliOption, UsageError } from './command.js';

const HELP: CliOption = { short: 'h', description: 'this text' };

/** Reads what follows a command's name, or says that help is wanted. @throws UsageError */
export function readArguments(command: CliCommand, argv: readonly string[]): CliArguments | 'help' {
  const options = { ...command.options, help: HELP };
  const { tokens } = parseArgs({
    args: [...argv],
    strict: false,
    tokens: true,
    options: Object.fromEntries(
      Object.entries(options).map(([name, { value, short }]) => [
        name,
        { type: value === undefined ? ('boolean' as const) : ('string' as const), ...(short && { short }) },
      ]),
    ),
  });
  const given = new Map<string, string | undefined>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const option = command.options[token.name] ?? (token.name === 'help' ? HELP : undefined);
    if (option === undefined)
      throw new UsageError(`unknown option ${token.rawName}${meant(token.rawName, Object.keys(options), '--')}`);
    if (option.value === undefined && token.value !== undefined) throw new UsageError(`${token.rawName} takes no value`);
    if (option.value !== undefined && (token.value === undefined || (!token.inlineValue && /^-./.test(token.value)))) {
      throw new UsageError(`${token.rawName} needs a value: ${token.rawName} ${option.value}`);
    }
    given.set(token.name, token.value);
  }
  if (given.has('help')) return 'help';
  const extra = positionals[command.positionals?.length ?? 0];
  if (extra !== undefined) throw new UsageError(`unexpected argument "${extra}"`);
  return { positionals, text: (option) => given.get(option), has: (option) => given.has(option) };
}

/** `, did you mean --json?` */
export function meant(word: string, known: readonly string[], prefix = ''): string {
  const near = nearest(word, known);
  return near === undefined ? '' : `, did you mean ${prefix}${near}?`;
}

/** `Usage: plugboard start [-c FILE]` and what the options mean. */
export function helpOf(name: string, command: CliCommand): string {
  const options = Object.entries({ ...command.options, help: HELP });
  const brief = options
    .filter(([option]) => option !== 'help')
    .map(([option, { short, value }]) => `[${short ? `-${short}` : `--${option}`}${value ? ` ${value}` : ''}]`);
  const rows = options.map(([option, { short, value, description }]): [string, string] => [
    `${short ? `-${short}, ` : '    '}--${option}${value ? ` ${value}` : ''}`,
    description,
  ]);
  return [
    `Usage: plugboard ${[name, ...(command.positionals ?? []), ...brief].join(' ')}`,
    '',
    `${command.summary}.`,
    '',
    table(rows),
  ].join('\n');
}

/** Two columns, the first as wide as it must be, and at least so wide. */
export function table(rows: readonly (readonly [string, string])[], least = 0): string {
  const width = Math.max(least, ...rows.map(([first]) => first.length));
  return rows.map(([first, second]) => `  ${first.padEnd(width)}  ${second}`.trimEnd()).join('\n');
}
