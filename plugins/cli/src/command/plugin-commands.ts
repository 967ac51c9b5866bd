import { ConfigError } from '@plugboard/kernel';
import { type CommandAction, Commands, UsageError } from '@plugboard/kernel/contracts';
import type { Command, CommandOption } from '@plugboard/kernel/internal';
import { composeServer } from '../server/compose.js';
import { runningConfigs } from '../server/running-config.js';
import { didYouMean, peekArguments } from './arguments.js';
import { CONFIG_OPTION, configFile } from './config-option.js';

/**
 * Well-known commands of plugins: what a file needs to have them, for the help and for an error.
 */
export const EXPECTED: Readonly<Record<string, { readonly summary: string; readonly cure: string }>> = {
  token: {
    summary: 'Creates, lists, rotates and revokes API tokens; needs "auth: { bearer: {} }" in the file',
    cure: 'install @plugboard/auth-bearer, and add "auth: { bearer: {} }" to the file',
  },
};

const ENTRY_OPTION: CommandOption = {
  value: 'ENTRY',
  description: 'an entry of the file, for example auth.bearer, if several have this command',
};

const OWN_OPTIONS = { config: CONFIG_OPTION, entry: ENTRY_OPTION };

/**
 * The names and summaries of the plugins' commands.
 *
 * @throws ConfigError if the file cannot be read.
 */
export async function pluginCommands(file: string): Promise<ReadonlyMap<string, string>> {
  return new Map((await contributed(file)).commands.map(({ name, value }) => [name, value.summary]));
}

/**
 * Finds a command of the file's plugins. Mistakes in other entries do not matter: it must be
 * possible to revoke a token even if the variables of a model are not set.
 *
 * @param argv the arguments after the name, with the file and the entry.
 * @param own the names of the program's own commands, for suggestions.
 * @throws UsageError if there is no such command, or if several entries have it; ConfigError if
 * mistakes in the file may be the cause.
 */
export async function pluginCommand(name: string, argv: readonly string[], own: readonly string[]): Promise<Command> {
  const given = peekArguments(argv, OWN_OPTIONS);
  const file = configFile(given);
  const isExpected = Object.hasOwn(EXPECTED, name);
  const { commands, mistakes } = await contributed(file).catch((error: unknown) => {
    if (!(error instanceof ConfigError) || isExpected) throw error;
    return { commands: [], mistakes: undefined }; // a mistyped command does not report mistakes in the file
  });
  const named = commands.filter((command) => command.name === name);
  if (named.length === 0) {
    if (mistakes && isExpected) throw mistakes;
    const expected = isExpected ? `: no plugin of ${file} provides it; ${EXPECTED[name]?.cure}` : undefined;
    throw new UsageError(
      `unknown command "${name}"${expected ?? didYouMean(name, [...own, ...commands.map((command) => command.name)])}`,
    );
  }
  const entry = given.text('entry');
  const [first, ...others] = entry === undefined ? named : named.filter((command) => command.entry === entry);
  if (first === undefined || others.length > 0) {
    const entries = named.map((command) => command.entry);
    throw new UsageError(
      first === undefined
        ? `${entry} has no command "${name}"; ${entries.join(' and ')} ${entries.length === 1 ? 'does' : 'do'}`
        : `${entries.join(' and ')} both have the command "${name}"; choose one, for example --entry ${first.entry}`,
    );
  }
  return withOwnOptions(first.value, () => [
    ...(mistakes ? [`${file} has mistakes that do not matter here; plugboard check lists them`] : []),
    ...runningConfigs(file)
      .filter(({ image }) => !Object.hasOwn(image.entries, first.entry))
      .map(({ pid }) => `server ${pid} runs without ${first.entry}: run plugboard reload, or restart it`),
  ]);
}

async function contributed(file: string) {
  const server = await composeServer({ file, partial: true });
  return { commands: server.extensions(Commands).all(), mistakes: server.inspection.mistakes };
}

/** Adds the options of every plugin command. @param warnings printed before the command runs. */
function withOwnOptions(command: Command, warnings: () => readonly string[]): Command {
  if (!('actions' in command)) return withOptions(command, warnings);
  return {
    ...command,
    actions: Object.fromEntries(Object.entries(command.actions).map(([name, one]) => [name, withOptions(one, warnings)])),
  };
}

function withOptions(action: CommandAction, warnings: () => readonly string[]): CommandAction {
  return {
    ...action,
    options: { ...action.options, ...OWN_OPTIONS },
    run: (args, terminal) => {
      for (const warning of warnings()) terminal.note(warning);
      return action.run(args, terminal);
    },
  };
}
