import { defineExtensionPoint } from '../host/plugin/extension-point.js';

/**
 * A subcommand of `plugboard`: one that does something itself, or a family of actions.
 *
 * Discipline: in file order, looked up by the name that a command is contributed under. Where several entries of a file bring a command of one name, whoever
 * calls it says which is meant, with `--entry`. The program's own commands come first: their names cannot be taken.
 *
 * 1. Whoever calls `plugboard NAME` has the file read and every plugin registered, as `plugboard check` does; nothing is started. Entries with mistakes are left out.
 * 2. The command is run with its arguments checked. It may open what it needs, and ends when its work is done.
 * 3. What `run` returns is the program's exit code.
 */
export type Command = CommandAction | CommandFamily;

export const Commands = defineExtensionPoint<Command>('cli.command', { discipline: 'in-order' });

/** `plugboard token create`, `plugboard token list`: several things to do under one name. */
export interface CommandFamily {
  /** One line, for the list of commands. */
  readonly summary: string;
  readonly actions: Readonly<Record<string, CommandAction>>;
}

export interface CommandAction {
  /** One line, for the list of commands. */
  readonly summary: string;
  /** What follows the name besides options: `ID` must be there, `[AGENT]` may be. */
  readonly positionals?: readonly string[];
  /** `config` and `entry` are added for plugins' commands, and `help` for all. */
  readonly options: Readonly<Record<string, CommandOption>>;
  /**
   * Does the work.
   *
   * @returns the program's exit code.
   * @throws UsageError, CommandError and ConfigError are printed as they are, with the exit codes 2, 1 and 78; anything else with its stack, and 1.
   */
  run(args: CommandArguments, terminal: CommandTerminal): Promise<number>;
}

/** `-c FILE`, `--config FILE`. An option without `value` is a switch. */
export interface CommandOption {
  /** What the option takes, as its help calls it. */
  readonly value?: string;
  /** One letter. */
  readonly short?: string;
  /** Whether nothing can be done without it. */
  readonly required?: boolean;
  readonly description: string;
}

export interface CommandArguments {
  readonly positionals: readonly string[];
  /** The text behind an option that takes one. */
  text(option: string): string | undefined;
  /** Whether a switch was given. */
  has(option: string): boolean;
}

/** Where a command reads and writes. */
export interface CommandTerminal {
  /** Standard input. */
  readonly input: AsyncIterable<Uint8Array | string>;
  /** What was asked for, for people or programs: standard output. A newline is added. */
  print(text: string): void;
  /** What a person should know besides: standard error. A newline is added. */
  note(text: string): void;
}

/** The command line cannot be understood. The program's exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly code = 'USAGE';
}

/** What was asked for cannot be done. The message says why, and what would help; the program's exit code is 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
  readonly code = 'COMMAND';
}

/** The option of every command that reads a configuration. */
export const CONFIG_OPTION: CommandOption = {
  value: 'FILE',
  short: 'c',
  description: 'the configuration; plugboard.yaml in the working folder where it is left out',
};

export function configFile(args: Pick<CommandArguments, 'text'>): string {
  return args.text('config') ?? 'plugboard.yaml';
}
