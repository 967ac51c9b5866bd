import { ConfigError, StartError } from '@plugboard/kernel';
import { type CommandAction, CommandError, Commands, UsageError } from '@plugboard/kernel/contracts';
import type { Command, CommandOption, HostServer } from '@plugboard/kernel/internal';
import { composeServer } from '../server/compose.js';
import { runningConfigs } from '../server/running-config.js';
import { didYouMean, peekArguments } from './arguments.js';
import { CONFIG_OPTION, configFile } from './config-option.js';

/** What a file needs to have a well-known command of a plugin, for the help and for an error. */
interface ExpectedCommand {
  readonly summary: string;
  readonly cure: string;
  /** A configuration with the command, for its help. */
  readonly config: Readonly<Record<string, unknown>>;
}

const RECORD = {
  config: { transports: {}, plugins: { record: {} } },
  cure: 'install @plugboard/plugin-record, and add "plugins: { record: {} }" to the file',
};

export const EXPECTED: Readonly<Record<string, ExpectedCommand>> = {
  token: {
    config: { transports: {}, auth: { bearer: {} } },
    summary: 'Creates, lists, rotates and revokes API tokens; needs "auth: { bearer: {} }" in the file',
    cure: 'install @plugboard/auth-bearer, and add "auth: { bearer: {} }" to the file',
  },
  tools: {
    config: { transports: {}, tools: { docs: { use: 'mcp', url: 'https://docs.example.com/mcp' } } },
    summary: 'Accepts changed tools of an MCP server over HTTP; needs "use: mcp" with `url` in the file',
    cure: 'install @plugboard/tool-mcp, and add an entry with "use: mcp" and `url` under `tools`',
  },
  replay: {
    ...RECORD,
    summary: 'Runs a recorded turn offline, and prints what changed; needs "plugins: { record: {} }" in the file',
  },
  rehearse: {
    ...RECORD,
    summary: 'Runs the newest recorded turns again, and counts what changed; needs "plugins: { record: {} }" in the file',
  },
};

const ENTRY_OPTION: CommandOption = {
  value: 'ENTRY',
  description: 'an entry of the file, for example auth.bearer, if several have this command',
};

const OWN_OPTIONS = { config: CONFIG_OPTION, entry: ENTRY_OPTION };

/** The names and summaries of the plugins' commands. @throws ConfigError */
export async function pluginCommands(file: string): Promise<ReadonlyMap<string, string>> {
  return new Map((await contributed({ file })).commands.map(({ name, value }) => [name, value.summary]));
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
  const expectation = Object.hasOwn(EXPECTED, name) ? EXPECTED[name] : undefined;
  const asksForHelp = argv.some((word) => word === '--help' || word === '-h');
  const { commands, mistakes, server } = await contributed({ file }).catch((error: unknown) => {
    if (!(error instanceof ConfigError) || (expectation && !asksForHelp)) throw error;
    return { commands: [], mistakes: undefined, server: undefined }; // neither help nor a mistyped command reports mistakes in the file
  });
  const named = commands.filter((command) => command.name === name);
  if (named.length === 0) {
    if (expectation && asksForHelp) return commandForHelp(name, expectation);
    if (mistakes && expectation) throw mistakes;
    const expected = expectation && `: no plugin of ${file} provides it; ${expectation.cure}`;
    throw new UsageError(
      `unknown command "${name}"${expected ?? didYouMean(name, [...own, ...commands.map((command) => command.name)])}`,
    );
  }
  const entry = given.text('entry');
  const [first, ...others] = entry === undefined ? named : named.filter((command) => command.entry === entry);
  if (first === undefined || (others.length > 0 && !asksForHelp)) {
    const entries = named.map((command) => command.entry);
    throw new UsageError(
      first === undefined
        ? `${entry} has no command "${name}"; ${entries.join(' and ')} ${entries.length === 1 ? 'does' : 'do'}`
        : `${entries.join(' and ')} both have the command "${name}"; choose one, for example --entry ${first.entry}`,
    );
  }
  return withOwnOptions(first.value, server, () => [
    ...(mistakes ? [`${file} has mistakes that do not matter here; plugboard check lists them`] : []),
    ...runningConfigs(file)
      .filter(({ image }) => !Object.hasOwn(image.entries, first.entry))
      .map(({ pid }) => `server ${pid} runs without ${first.entry}: run plugboard reload, or restart it`),
  ]);
}

/** The command for its help, where the file has mistakes or lacks the plugin. */
async function commandForHelp(name: string, { config, summary, cure }: ExpectedCommand): Promise<Command> {
  const { commands } = await contributed({ config });
  const found = commands.find((command) => command.name === name);
  return found ? withOwnOptions(found.value, undefined, () => []) : { summary: `${summary}: ${cure}`, actions: {} };
}

async function contributed(source: Pick<Parameters<typeof composeServer>[0], 'file' | 'config'>) {
  const server = await composeServer({ ...source, partial: true });
  return { commands: server.extensions(Commands).all(), mistakes: server.inspection.mistakes, server };
}

/**
 * Adds the options of every plugin command.
 * @param server the one that the command is of. Absent for its help.
 * @param warnings printed before the command runs.
 */
function withOwnOptions(command: Command, server: HostServer | undefined, warnings: () => readonly string[]): Command {
  if (!('actions' in command)) return withOptions(command, server, warnings);
  const actions = Object.entries(command.actions).map(([name, one]) => [name, withOptions(one, server, warnings)] as const);
  return { ...command, actions: Object.fromEntries(actions) };
}

function withOptions(action: CommandAction, server: HostServer | undefined, warnings: () => readonly string[]): CommandAction {
  return {
    ...action,
    options: { ...action.options, ...OWN_OPTIONS },
    run: async (args, terminal) => {
      for (const warning of warnings()) terminal.note(warning);
      if (!server || !action.usesState?.()) return action.run(args, terminal);
      try {
        await server.startState();
        return await action.run(args, terminal);
      } catch (error) {
        throw error instanceof StartError ? new CommandError(error.message) : error;
      } finally {
        await server.stop();
      }
    },
  };
}
