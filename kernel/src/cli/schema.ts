import { compose } from '../host/compose.js';
import { layout } from '../layout.js';
import { CONFIG_OPTION, type CommandAction, configFile } from './command.js';

/** The JSON Schema of the whole file. A first line in the file, `# yaml-language-server: $schema=./plugboard.schema.json`, points an editor to it. */
export const schema: CommandAction = {
  summary: 'Prints the JSON Schema of the whole file for its plugins, for editors',
  options: { config: CONFIG_OPTION },
  async run(args) {
    const server = await compose({ file: configFile(args), layout });
    process.stdout.write(`${JSON.stringify(await server.schema(), undefined, 2)}\n`);
    return 0;
  },
};
