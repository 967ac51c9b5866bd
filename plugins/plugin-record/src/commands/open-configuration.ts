import { StartError } from '@plugboard/kernel';
import type { CommandArguments, CommandTerminal } from '@plugboard/kernel/contracts';
import { ReplayServer } from '../replay/replay-server.js';

/** The exit code for a configuration or a recording that is wrong: EX_CONFIG of sysexits.h. */
export const EXIT_WRONG_FILE = 78;

export function configFile(args: CommandArguments): string {
  return args.text('config') ?? 'plugboard.yaml';
}

/**
 * Opens the configuration under which turns are replayed. Returns undefined if it does not start,
 * which has been printed then.
 *
 * @throws ConfigError with the mistakes in the file.
 */
export async function openConfiguration(
  args: CommandArguments,
  terminal: CommandTerminal,
  isLive: boolean,
): Promise<ReplayServer | undefined> {
  const file = args.text('against') ?? configFile(args);
  try {
    return await ReplayServer.open(file, isLive);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    terminal.note(`plugboard: turns cannot be replayed with ${file}: ${error.message}`);
    return undefined;
  }
}
