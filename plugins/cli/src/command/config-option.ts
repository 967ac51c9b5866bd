import type { CommandArguments } from '@plugboard/kernel/contracts';
import type { CommandOption } from '@plugboard/kernel/internal';

/** The exit code for an invalid configuration: EX_CONFIG of sysexits.h. */
export const EXIT_CONFIG = 78;

/** The option of every command that reads a configuration. */
export const CONFIG_OPTION: CommandOption = {
  value: 'FILE',
  short: 'c',
  description: 'the configuration file; by default plugboard.yaml in the working folder',
};

export function configFile(args: Pick<CommandArguments, 'text'>): string {
  return args.text('config') ?? 'plugboard.yaml';
}
