import { ConfigError } from '../host/base/errors.js';
import { compose } from '../host/compose.js';
import { layout } from '../layout.js';
import { meant, peekArguments } from './arguments.js';
import {
  CONFIG_OPTION,
  type Command,
  type CommandAction,
  type CommandOption,
  Commands,
  configFile,
  UsageError,
} from './command.js';

/** Commands that people expect, and what a file needs for them. */
const EXPECTED: Readonly<Record<string, string>> = {
  token: 'it comes with @plugboard/auth-bearer; install that, and add "auth: { bearer: {} }" to the file',
};

const ENTRY_OPTION: CommandOption = {
  value: 'ENTRY',
  description: 'the entry of the file that is meant, such as auth.bearer, where several bring this command',
};

const OWN_OPTIONS = { config: CONFIG_OPTION, entry: ENTRY_OPTION };

/** Of each plugin's command, its name and what it is for. @throws ConfigError where the file cannot be read. */
export async function pluginCommands(file: string): Promise<ReadonlyMap<string, string>> {
  return new Map((await contributed(file)).commands.map(({ name, value }) => [name, value.summary]));
}

/**
 * The command of that name which the file's plugins bring. Mistakes in other entries do not keep it from its work: a token must be revoked also where
 * the variables of a model are not at hand.
 *
 * @param argv what follows the name: it says which file, and which entry.
 * @param own the names of the program's own commands, for suggestions.
 * @throws UsageError where there is none, or several; ConfigError where mistakes in the file may be the cause.
 */
export async function pluginCommand(name: string, argv: readonly string[], own: readonly string[]): Promise<Command> {
  const given = peekArguments(argv, OWN_OPTIONS);
  const file = configFile(given);
  const isExpected = Object.hasOwn(EXPECTED, name);
  const { commands, mistakes } = await contributed(file).catch((error: unknown) => {
    if (!(error instanceof ConfigError) || isExpected) throw error;
    return { commands: [], mistakes: undefined }; // whoever mistypes a command is not told of the mistakes in a file
  });
  const named = commands.filter((command) => command.name === name);
  if (named.length === 0) {
    if (mistakes && isExpected) throw mistakes;
    const expected = isExpected ? `, for no plugin in ${file} brings it: ${EXPECTED[name]}` : undefined;
    throw new UsageError(
      `there is no command "${name}"${expected ?? meant(name, [...own, ...commands.map((command) => command.name)])}`,
    );
  }
  const entry = given.text('entry');
  const [first, ...others] = entry === undefined ? named : named.filter((command) => command.entry === entry);
  if (first === undefined || others.length > 0) {
    const entries = named.map((command) => command.entry);
    throw new UsageError(
      first === undefined
        ? `${entry} brings no command "${name}"; ${entries.join(' and ')} ${entries.length === 1 ? 'does' : 'do'}`
        : `${entries.join(' and ')} both bring the command "${name}"; say which is meant, with --entry ${first.entry}`,
    );
  }
  return withOwnOptions(
    first.value,
    mistakes && `${file} cannot be run as it stands (plugboard check tells why); that does not matter here`,
  );
}

async function contributed(file: string) {
  const server = await compose({ file, layout, partial: true });
  return { commands: server.extensions(Commands).all(), mistakes: server.mistakes };
}

/** @param warning what whoever runs it is told first. */
function withOwnOptions(command: Command, warning: string | undefined): Command {
  if (!('actions' in command)) return withOptions(command, warning);
  return {
    ...command,
    actions: Object.fromEntries(Object.entries(command.actions).map(([name, one]) => [name, withOptions(one, warning)])),
  };
}

function withOptions(action: CommandAction, warning: string | undefined): CommandAction {
  return {
    ...action,
    options: { ...action.options, ...OWN_OPTIONS },
    run: (args, terminal) => {
      if (warning !== undefined) terminal.note(warning);
      return action.run(args, terminal);
    },
  };
}
