/**
 * `plugboard`: the one program of a distribution.
 *
 * A distribution is any folder with a `package.json` that depends on `@plugboard/kernel` and on the plugins it wants, and a
 * `plugboard.yaml` that says how they are put together. In that folder,
 *
 *     plugboard chat       talks to an agent in the terminal
 *     plugboard check      tells whether the file can be run, and everything that is wrong with it
 *     plugboard start      runs the server until it is told to stop (SIGTERM, or Ctrl-C)
 *     plugboard plugins    shows what is loaded, from where, and what each plugin provides
 *     plugboard schema     prints the file's JSON Schema, for editors
 *
 * Each command is one file of this folder, imported only when it is used. Plugins may bring more: where a file uses auth-bearer,
 *
 *     plugboard token      makes, lists, revokes and rotates API tokens
 *
 * What people are to read goes to standard output, logs and what went wrong to standard error. The exit code is
 *
 *     0    all went well
 *     1    the server did not start, broke, or did not stop cleanly; or what was asked for could not be done
 *     2    the command line makes no sense
 *     78   the configuration cannot be run; nothing was started
 */

import { ConfigError } from '../host/base/errors.js';
import { KERNEL } from '../host/base/kernel-package.js';
import { helpOf, helpOfFamily, meant, peekArguments, readArguments, table } from './arguments.js';
import {
  CONFIG_OPTION,
  type Command,
  type CommandAction,
  type CommandArguments,
  CommandError,
  type CommandTerminal,
  configFile,
  UsageError,
} from './command.js';

const EXIT_FAILURE = 1;
const EXIT_USAGE = 2;
/** EX_CONFIG of sysexits.h. */
const EXIT_CONFIG = 78;

const commands: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import('./start.js')).start,
  chat: async () => (await import('./chat.js')).chat,
  check: async () => (await import('./check.js')).check,
  plugins: async () => (await import('./plugins.js')).plugins,
  schema: async () => (await import('./schema.js')).schema,
};

const terminal: CommandTerminal = {
  input: process.stdin,
  print: (text) => void print(text),
  note: (text) => void process.stderr.write(`${text}\n`),
};

/** Runs the command that the arguments name, and ends the process with its exit code: whatever a plugin left open does not keep it alive. */
export async function main(argv: readonly string[]): Promise<never> {
  process.stdout.on('error', () => undefined); // whoever read it has gone: no reason to fall over
  process.exit(await run(argv));
}

async function run([name = '--help', ...rest]: readonly string[]): Promise<number> {
  try {
    if (name === '--version') return print(KERNEL.version);
    if (['help', '--help', '-h'].includes(name)) return print(await help(rest));
    const command = await find(name, rest);
    if (!('actions' in command)) return await runAction(name, command, rest);
    const [first = '', ...others] = rest;
    if (/^(|-.*)$/.test(first) && rest.some((word) => word === '--help' || word === '-h'))
      return print(helpOfFamily(name, command));
    const action = Object.hasOwn(command.actions, first) ? command.actions[first] : undefined;
    if (action === undefined) throw new UsageError(noAction(name, first, Object.keys(command.actions)));
    return await runAction(`${name} ${first}`, action, others);
  } catch (error) {
    if (error instanceof ConfigError) return complain(error.message, EXIT_CONFIG);
    if (error instanceof UsageError) return complain(`plugboard: ${error.message}\nplugboard --help tells more.`, EXIT_USAGE);
    if (error instanceof CommandError) return complain(`plugboard: ${error.message}`, EXIT_FAILURE);
    return complain(`plugboard: ${error instanceof Error ? error.stack : error}`, EXIT_FAILURE);
  }
}

/** One of the program's own commands, or of those that plugins bring. */
async function find(name: string, argv: readonly string[]): Promise<Command> {
  const own = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (own !== undefined) return own();
  return (await import('./plugin-commands.js')).pluginCommand(name, argv, Object.keys(commands));
}

async function runAction(name: string, action: CommandAction, argv: readonly string[]): Promise<number> {
  const args = readArguments(name, action, argv);
  return args === 'help' ? print(helpOf(name, action)) : await toTheEnd(action, args);
}

/** Runs a command until the last line of its log is written. */
async function toTheEnd(command: CommandAction, args: CommandArguments): Promise<number> {
  const { logWritten } = await import('../host/log/log.js');
  try {
    return await command.run(args, terminal);
  } finally {
    await logWritten();
  }
}

function noAction(name: string, word: string, actions: readonly string[]): string {
  const known = `${actions.slice(0, -1).join(', ')} or ${actions.at(-1)}`;
  if (word === '' || word.startsWith('-')) return `plugboard ${name} needs an action before anything else: ${known}`;
  return `plugboard ${name} has no action "${word}"${meant(word, actions) || `; there are ${known}`}`;
}

async function help(argv: readonly string[]): Promise<string> {
  const own = Object.entries(commands).map(async ([name, load]): Promise<[string, string]> => [name, (await load()).summary]);
  return [
    'Usage: plugboard COMMAND [OPTIONS]',
    '',
    table([...(await Promise.all(own)), ...(await foreign(argv))]),
    '',
    'plugboard COMMAND --help tells what a command takes, plugboard --version which version this is.',
  ].join('\n');
}

/** The commands that plugins bring, as far as there is a file that can be read. */
async function foreign(argv: readonly string[]): Promise<[string, string][]> {
  try {
    const found = await (await import('./plugin-commands.js')).pluginCommands(
      configFile(peekArguments(argv, { config: CONFIG_OPTION })),
    );
    return [...found].filter(([name]) => !Object.hasOwn(commands, name));
  } catch {
    return []; // whoever asks for help is not told of a file's mistakes
  }
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

function complain(text: string, code: number): number {
  process.stderr.write(`${text}\n`);
  return code;
}
