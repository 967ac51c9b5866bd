/** One subcommand of `plugboard`. */
export interface CliCommand {
  /** One line, for the list of commands. */
  readonly summary: string;
  /** What may follow the command's name besides options, for example `[AGENT]`. */
  readonly positionals?: readonly string[];
  readonly options: Readonly<Record<string, CliOption>>;
  /** Does the work. What it returns is the program's exit code; a ConfigError that it throws is printed, and the code is 78. */
  run(args: CliArguments): Promise<number>;
}

/** `-c FILE`, `--config FILE`. An option without `value` is a switch. */
export interface CliOption {
  /** What the option takes, as its help calls it. */
  readonly value?: string;
  /** One letter. */
  readonly short?: string;
  readonly description: string;
}

export interface CliArguments {
  readonly positionals: readonly string[];
  /** The text behind an option that takes one. */
  text(option: string): string | undefined;
  /** Whether a switch was given. */
  has(option: string): boolean;
}

/** The option of every command that reads a configuration. */
export const CONFIG_OPTION: CliOption = {
  value: 'FILE',
  short: 'c',
  description: 'the configuration; plugboard.yaml in the working folder where it is left out',
};

export function configFile(args: CliArguments): string {
  return args.text('config') ?? 'plugboard.yaml';
}

/** The command line cannot be understood. The program's exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly code = 'USAGE';
}
