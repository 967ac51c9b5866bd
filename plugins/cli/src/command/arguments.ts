import { parseArgs } from 'node:util';
import { type CommandAction, type CommandArguments, type CommandFamily, nearest, UsageError } from '@plugboard/kernel/contracts';
import type { CommandOption } from '@plugboard/kernel/internal';

const HELP: CommandOption = { short: 'h', description: 'print this help' };

type Options = Readonly<Record<string, CommandOption>>;

/**
 * Parses the arguments of a command. Returns `help` if they ask for help.
 *
 * @param name as typed: `check`, `token create`.
 * @throws UsageError
 */
export function readArguments(name: string, command: CommandAction, argv: readonly string[]): CommandArguments | 'help' {
  const options = { ...command.options, help: HELP };
  const given = new Map<string, string | undefined>();
  const positionals: string[] = [];
  for (const token of tokensOf(argv, options)) {
    if (token.kind === 'positional') positionals.push(token.value);
    if (token.kind !== 'option') continue;
    const option = Object.hasOwn(options, token.name) ? options[token.name as keyof typeof options] : undefined;
    if (option === undefined)
      throw new UsageError(`unknown option ${token.rawName}${didYouMean(token.rawName, Object.keys(options), '--')}`);
    if (option.value === undefined && token.value !== undefined) throw new UsageError(`${token.rawName} takes no value`);
    if (option.value !== undefined && (token.value === undefined || (!token.inlineValue && /^-./.test(token.value)))) {
      throw new UsageError(`${token.rawName} needs a value: ${token.rawName} ${option.value}`);
    }
    given.set(token.name, token.value);
  }
  if (given.has('help')) return 'help';
  const { positionals: places = [] } = command;
  const extra = positionals[places.length];
  if (extra !== undefined) throw new UsageError(`unexpected argument "${extra}"`);
  const missing = [
    ...places.slice(positionals.length).filter((place) => !place.startsWith('[')),
    ...Object.entries(options).flatMap(([option, { required, value }]) =>
      required && !given.has(option) ? [`--${option} ${value}`] : [],
    ),
  ];
  if (missing.length > 0) throw new UsageError(`plugboard ${name} needs ${missing.join(' and ')}`);
  return { positionals, text: (option) => given.get(option), has: (option) => given.has(option) };
}

/** Reads only these options, wherever they are in the arguments, and ignores everything else. */
export function peekArguments(argv: readonly string[], options: Options): Pick<CommandArguments, 'text'> {
  const given = new Map<string, string | undefined>();
  for (const token of tokensOf(argv, options)) if (token.kind === 'option') given.set(token.name, token.value);
  return { text: (option) => given.get(option) };
}

function tokensOf(argv: readonly string[], options: Options) {
  const described = Object.entries(options).map(([name, { value, short }]) => [
    name,
    { type: value === undefined ? ('boolean' as const) : ('string' as const), ...(short && { short }) },
  ]);
  return parseArgs({ args: [...argv], strict: false, tokens: true, options: Object.fromEntries(described) }).tokens;
}

/** `, did you mean --json?` */
export function didYouMean(word: string, known: readonly string[], prefix = ''): string {
  const near = nearest(word, known);
  return near === undefined ? '' : `, did you mean ${prefix}${near}?`;
}

/** Formats the help of a command: `Usage: plugboard start [-c FILE]` and its options. */
export function helpOf(name: string, command: CommandAction): string {
  const options = Object.entries({ ...command.options, help: HELP });
  const brief = options
    .filter(([option]) => option !== 'help')
    .map(([option, { short, value, required }]) => {
      const text = `${short ? `-${short}` : `--${option}`}${value ? ` ${value}` : ''}`;
      return required ? text : `[${text}]`;
    });
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

/** Formats the help of a family of commands: its actions. */
export function helpOfFamily(name: string, { summary, actions }: CommandFamily): string {
  return [
    `Usage: plugboard ${name} ACTION [OPTIONS]`,
    '',
    `${summary}.`,
    '',
    table(Object.entries(actions).map(([action, { summary }]) => [action, summary])),
    '',
    `Run plugboard ${name} ACTION --help for the options of an action.`,
  ].join('\n');
}

/** Formats two columns. @param least the least width of the first one. */
export function table(rows: readonly (readonly [string, string])[], least = 0): string {
  const width = Math.max(least, ...rows.map(([first]) => first.length));
  return rows.map(([first, second]) => `  ${first.padEnd(width)}  ${second}`.trimEnd()).join('\n');
}
