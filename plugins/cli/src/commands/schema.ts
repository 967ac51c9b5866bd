import type { CommandAction } from '@plugboard/kernel/contracts';
import { compose, layout } from '@plugboard/kernel/internal';
import { CONFIG_OPTION, configFile } from '../command/config-option.js';

/**
 * Prints the JSON Schema of the file. An editor finds it by the first line
 * `# yaml-language-server: $schema=./plugboard.schema.json`.
 */
export const schema: CommandAction = {
  summary: 'Prints the JSON Schema of the configuration file, for editors',
  options: { config: CONFIG_OPTION },
  async run(args) {
    const server = await compose({ file: configFile(args), layout });
    process.stdout.write(`${JSON.stringify(await server.schema(), undefined, 2)}\n`);
    return 0;
  },
};
