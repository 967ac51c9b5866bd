/**
 * `plugboard`: the program of every distribution.
 *
 * A distribution is a folder with a `package.json` that depends on `@plugboard/kernel` and on the
 * plugins it uses, and a `plugboard.yaml` that configures them. In that folder:
 *
 *     plugboard start      runs the server until it is stopped (SIGTERM, or Ctrl-C)
 *     plugboard chat       talks to an agent in the terminal
 *     plugboard reload     reloads the configuration of the running server
 *     plugboard channels   lists the channels of the running servers
 *     plugboard pair       lets a sender of a channel in
 *     plugboard outbox     lists replies of channels that failed, and sends them again
 *     plugboard usage      prints the tokens, money and budgets of a running server
 *     plugboard check      checks the configuration and reports all mistakes
 *     plugboard plugins    lists the loaded plugins, their paths, and what they provide
 *     plugboard schema     prints the JSON Schema of the configuration file, for editors
 *     plugboard init       creates a distribution
 *     plugboard create-plugin   creates a plugin
 *
 * Each command is one file in `commands`. All of them are bundled into one file, because a start
 * takes longer with every file that it reads. Plugins can add commands.
 * If the file uses auth-bearer:
 *
 *     plugboard token      creates, lists, revokes and rotates API tokens
 *
 * If it uses tool-mcp over HTTP:
 *
 *     plugboard tools      accepts changed tools of an MCP server
 *
 * If it uses plugin-record:
 *
 *     plugboard replay     runs a recorded turn again, and prints what changed
 *     plugboard rehearse   runs the newest recorded turns again
 *
 * Results go to standard output, logs and errors to standard error. The exit code is
 *
 *     0    success
 *     1    the server did not start, crashed, or did not stop cleanly; or the command failed
 *     2    the command line is invalid
 *     78   the configuration is invalid; nothing was started
 */

import { ConfigError } from '@plugboard/kernel';
import {
  type CommandAction,
  type CommandArguments,
  CommandError,
  type CommandTerminal,
  UsageError,
} from '@plugboard/kernel/contracts';
import { type Command, ignoreFilesIn, logWritten } from '@plugboard/kernel/internal';
import { PROGRAM } from './base/program.js';
import { didYouMean, helpOf, helpOfFamily, peekArguments, readArguments, table } from './command/arguments.js';
import { CONFIG_OPTION, configFile, EXIT_CONFIG } from './command/config-option.js';
import { EXPECTED, pluginCommand, pluginCommands } from './command/plugin-commands.js';
import { channels } from './commands/channels.js';
import { chat } from './commands/chat.js';
import { check } from './commands/check.js';
import { createPlugin } from './commands/create-plugin.js';
import { init } from './commands/init.js';
import { outbox } from './commands/outbox.js';
import { pair } from './commands/pair.js';
import { plugins } from './commands/plugins.js';
import { reload } from './commands/reload.js';
import { schema } from './commands/schema.js';
import { start } from './commands/start.js';
import { usage } from './commands/usage.js';
import { reportForeignExit } from './diagnosis/exit-report.js';

const EXIT_FAILURE = 1;
const EXIT_USAGE = 2;

const OUTPUTS = [process.stdout, process.stderr] as const;

const commands: Readonly<Record<string, Command>> = {
  start,
  reload,
  chat,
  channels,
  pair,
  outbox,
  usage,
  check,
  plugins,
  schema,
  init,
  'create-plugin': createPlugin,
};

const terminal: CommandTerminal = {
  input: process.stdin,
  print: (text) => void print(text),
  note: (text) => void process.stderr.write(`${text}\n`),
};

/** Runs a command and ends the process with its exit code, even if a plugin left something open. */
export async function main(argv: readonly string[]): Promise<never> {
  ignoreFilesIn(PROGRAM.path);
  // The reader of a pipe may have closed it: not an error.
  for (const stream of OUTPUTS) stream.on('error', () => undefined);
  const ownExit = reportForeignExit(argv[0] === 'start');
  const code = await run(argv);
  // A server that ran does not wait: its log is written as far as its reader lets it.
  if (argv[0] !== 'start' || code === EXIT_CONFIG) await Promise.all(OUTPUTS.map(flushed));
  ownExit();
  process.exit(code);
}

/** Waits until a pipe has taken what was written: the end of the process would cut it. */
function flushed(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => void stream.write('', () => resolve()));
}

async function run([name = '--help', ...rest]: readonly string[]): Promise<number> {
  let hint = 'plugboard --help for the commands';
  try {
    if (name === '--version') return print(PROGRAM.version);
    if (['help', '--help', '-h'].includes(name)) return print(await help(rest));
    const command = await find(name, rest);
    hint = `plugboard ${name} --help for its ${'actions' in command ? 'actions' : 'arguments'}`;
    if (!('actions' in command)) return await runAction(name, command, rest);
    const [first = '', ...others] = rest;
    if (/^(|-.*)$/.test(first) && rest.some((word) => word === '--help' || word === '-h'))
      return print(helpOfFamily(name, command));
    const action = Object.hasOwn(command.actions, first) ? command.actions[first] : undefined;
    if (action === undefined) throw new UsageError(noAction(name, first, Object.keys(command.actions)));
    hint = `plugboard ${name} ${first} --help for its arguments`;
    return await runAction(`${name} ${first}`, action, others);
  } catch (error) {
    if (error instanceof ConfigError) return fail(error.message, EXIT_CONFIG);
    if (error instanceof UsageError) return fail(`plugboard: ${error.message}\nRun ${hint}.`, EXIT_USAGE);
    if (error instanceof CommandError) return fail(`plugboard: ${error.message}`, EXIT_FAILURE);
    return fail(`plugboard: ${error instanceof Error ? error.stack : error}`, EXIT_FAILURE);
  }
}

/** Finds one of the program's own commands, or one of a plugin. */
async function find(name: string, argv: readonly string[]): Promise<Command> {
  const own = Object.hasOwn(commands, name) ? commands[name] : undefined;
  return own ?? pluginCommand(name, argv, Object.keys(commands));
}

async function runAction(name: string, action: CommandAction, argv: readonly string[]): Promise<number> {
  const args = readArguments(name, action, argv);
  return args === 'help' ? print(helpOf(name, action)) : await runToEnd(action, args);
}

/** Runs a command, and waits until its log is written. */
async function runToEnd(command: CommandAction, args: CommandArguments): Promise<number> {
  // The clock's timers keep no process alive, and a command may wait for nothing else.
  const alive = setInterval(() => {}, 2 ** 30);
  try {
    return await command.run(args, terminal);
  } finally {
    clearInterval(alive);
    await logWritten();
  }
}

function noAction(name: string, word: string, actions: readonly string[]): string {
  const known = `${actions.slice(0, -1).join(', ')} or ${actions.at(-1)}`;
  if (word === '' || word.startsWith('-')) return `plugboard ${name} needs an action as its first argument: ${known}`;
  return `plugboard ${name} has no action "${word}"${didYouMean(word, actions) || `; known: ${known}`}`;
}

async function help(argv: readonly string[]): Promise<string> {
  const own = Object.entries(commands).map(([name, { summary }]): [string, string] => [name, summary]);
  return [
    'Usage: plugboard COMMAND [OPTIONS]',
    '',
    table([...own, ...(await commandsOfPlugins(argv))]),
    '',
    'Run plugboard COMMAND --help for the options of a command, plugboard --version for the version.',
  ].join('\n');
}

/** The commands of plugins: those of the file, if it can be read, and well-known ones. */
async function commandsOfPlugins(argv: readonly string[]): Promise<[string, string][]> {
  const file = configFile(peekArguments(argv, { config: CONFIG_OPTION }));
  const found = await pluginCommands(file).catch(() => new Map<string, string>()); // help does not report mistakes in the file
  const expected = Object.entries(EXPECTED).filter(([name]) => !found.has(name));
  return [...found, ...expected.map(([name, { summary }]): [string, string] => [name, summary])].filter(
    ([name]) => !Object.hasOwn(commands, name),
  );
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

function fail(text: string, code: number): number {
  process.stderr.write(`${text}\n`);
  return code;
}
