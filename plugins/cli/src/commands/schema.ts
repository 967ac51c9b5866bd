import type { CommandAction } from '@plugboard/kernel/contracts';
import { CONFIG_OPTION, configFile } from '../command/config-option.js';
import { serverSchema } from '../schema/server-schema.js';
import { composeServer } from '../server/compose.js';

/** Prints the JSON Schema of the file, which editors find by `# yaml-language-server: $schema=`. */
export const schema: CommandAction = {
  summary: 'Prints the JSON Schema of the configuration file, for editors',
  options: { config: CONFIG_OPTION },
  async run(args) {
    const server = await composeServer({ file: configFile(args) });
    process.stdout.write(`${JSON.stringify(await serverSchema(server), undefined, 2)}\n`);
    return 0;
  },
};
