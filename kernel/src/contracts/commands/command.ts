import { recognizeAcrossCopies } from '../../host/base/across-copies.js';
import { defineExtensionPoint } from '../../host/plugin/extension-point.js';

/**
 * A subcommand of `plugboard`: a single action, or a family of actions.
 *
 * Discipline: in file order, looked up by the name of the contribution. If several entries
 * contribute a command with the same name, `--entry` chooses one. The program's own commands take
 * precedence.
 *
 * 1. `plugboard NAME` reads the file and registers every plugin, as `plugboard check` does, and
 *    starts nothing but the session store, for an action that uses it. Entries with mistakes are
 *    left out.
 * 2. The command runs with validated arguments. It can open what it needs, and ends when its work
 *    is done.
 * 3. The result of `run` is the program's exit code.
 *
 * @public
 */
export type Command = CommandAction | CommandFamily;

/** The extension point of commands: `cli.command`, in file order. @public */
export const Commands = defineExtensionPoint<Command>('cli.command', {
  discipline: 'in-order',
  shape: { summary: 'string' },
});

/** Several actions under one name: `plugboard token create`, `plugboard token list`. @public */
export interface CommandFamily {
  /** One line for the list of commands, without a full stop. */
  readonly summary: string;
  readonly actions: Readonly<Record<string, CommandAction>>;
}

/** What one command does: its help, its arguments, and the function that runs it. @public */
export interface CommandAction {
  /** One line for the list of commands, without a full stop. */
  readonly summary: string;
  /** The positional arguments: `ID` is required, `[AGENT]` is optional. */
  readonly positionals?: readonly string[];
  /** Every command also has `--help`, and the commands of plugins have `--config` and `--entry`. */
  readonly options: Readonly<Record<string, CommandOption>>;
  /**
   * Returns whether it uses `ctx.state`: the session store is then started before `run`, and
   * stopped afterwards. A store for one server at a time cannot be started while its server runs.
   */
  usesState?(): boolean;
  /**
   * Runs the action.
   *
   * @returns the program's exit code.
   * @throws UsageError (exit code 2), CommandError (1) and ConfigError (78), which are printed as
   *   they are. Other errors are printed with their stack (1).
   */
  run(args: CommandArguments, terminal: CommandTerminal): Promise<number>;
}

/** An option such as `-c FILE`, `--config FILE`. Without `value` it is a switch. @public */
export interface CommandOption {
  /** The name of the option's value in the help: `FILE`. */
  readonly value?: string;
  /** One letter. */
  readonly short?: string;
  /** Whether the command needs it. */
  readonly required?: boolean;
  readonly description: string;
}

/** The validated arguments of a command. @public */
export interface CommandArguments {
  readonly positionals: readonly string[];
  /** The value of an option. */
  text(option: string): string | undefined;
  /** Whether a switch was given. */
  has(option: string): boolean;
}

/** The input and output of a command. @public */
export interface CommandTerminal {
  /** Standard input. */
  readonly input: AsyncIterable<Uint8Array | string>;
  /** Prints results to standard output, with a newline. */
  print(text: string): void;
  /** Prints side information to standard error, with a newline. */
  note(text: string): void;
}

/** The command line is invalid. The program's exit code is 2. @public */
export class UsageError extends Error {
  override readonly name = 'UsageError';

  static {
    recognizeAcrossCopies(UsageError, 'UsageError');
  }
  readonly code = 'USAGE';
}

/** The command failed, with exit code 1. The message says why and what to do. @public */
export class CommandError extends Error {
  override readonly name = 'CommandError';

  static {
    recognizeAcrossCopies(CommandError, 'CommandError');
  }
  readonly code = 'COMMAND';
}
