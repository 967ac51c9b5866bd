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
 * Each command is one file of this folder, imported only when it is used. What people are to read goes to standard output, logs
 * and what went wrong to standard error. The exit code is
 *
 *     0    all went well
 *     1    the server did not start, broke, or did not stop cleanly
 *     2    the command line makes no sense
 *     78   the configuration cannot be run; nothing was started
 */

import { ConfigError } from '../host/errors.js';
import { KERNEL } from '../host/kernel-package.js';
import { helpOf, meant, readArguments, table } from './arguments.js';
import { type CliArguments, type CliCommand, UsageError } from './command.js';

const EXIT_FAILURE = 1;
const EXIT_USAGE = 2;
/** EX_CONFIG of sysexits.h. */
const EXIT_CONFIG = 78;

const commands: Readonly<Record<string, () => Promise<CliCommand>>> = {
  start: async () => (await import('./start.js')).start,
  chat: async () => (await import('./chat.js')).chat,
  check: async () => (await import('./check.js')).check,
  plugins: async () => (await import('./plugins.js')).plugins,
  schema: async () => (await import('./schema.js')).schema,
};

/** Runs the command that the arguments name, and ends the process with its exit code: whatever a plugin left open does not keep it alive. */
export async function main(argv: readonly string[]): Promise<never> {
  process.stdout.on('error', () => undefined); // whoever read it has gone: no reason to fall over
  process.exit(await run(argv));
}

async function run([name = '--help', ...rest]: readonly string[]): Promise<number> {
  try {
    if (name === '--version') return print(KERNEL.version);
    if (['help', '--help', '-h'].includes(name)) return print(await help());
    const load = Object.hasOwn(commands, name) ? commands[name] : undefined;
    if (load === undefined) throw new UsageError(`there is no command "${name}"${meant(name, Object.keys(commands))}`);
    const command = await load();
    const args = readArguments(command, rest);
    return args === 'help' ? print(helpOf(name, command)) : await toTheEnd(command, args);
  } catch (error) {
    if (error instanceof ConfigError) return complain(error.message, EXIT_CONFIG);
    if (error instanceof UsageError) return complain(`plugboard: ${error.message}\nplugboard --help tells more.`, EXIT_USAGE);
    return complain(`plugboard: ${error instanceof Error ? error.stack : error}`, EXIT_FAILURE);
  }
}

/** Runs a command until the last line of its log is written. */
async function toTheEnd(command: CliCommand, args: CliArguments): Promise<number> {
  const { logWritten } = await import('../host/log.js');
  try {
    return await command.run(args);
  } finally {
    await logWritten();
  }
}

async function help(): Promise<string> {
  const rows = Object.entries(commands).map(async ([name, load]): Promise<[string, string]> => [name, (await load()).summary]);
  return [
    'Usage: plugboard COMMAND [OPTIONS]',
    '',
    table(await Promise.all(rows)),
    '',
    'plugboard COMMAND --help tells what a command takes, plugboard --version which version this is.',
  ].join('\n');
}

function print(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

function complain(text: string, code: number): number {
  process.stderr.write(`${text}\n`);
  return code;
}
