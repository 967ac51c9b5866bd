import type { CommandAction } from '@plugboard/kernel/contracts';
import type { HostServer } from '@plugboard/kernel/internal';
import { CONFIG_OPTION, configFile } from '../command/config-option.js';
import { type DescribedEntry, fileSchema } from '../schema/file-schema.js';
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

/**
 * Builds the JSON Schema of the whole file for the plugins that it uses, including those of
 * disabled entries. If the plugin of a disabled entry is not installed, its options are not
 * described.
 */
export async function serverSchema({ inspection }: HostServer): Promise<Readonly<Record<string, unknown>>> {
  const { layout, contents, loader } = inspection.configuration;
  const prefixOf = (section: string) => layout.sections[section]?.prefix ?? '';
  const described = contents.entries.map(async ({ name, section, use, plugin }): Promise<DescribedEntry> => {
    const found = plugin ?? (await loader.load(use, prefixOf(section)).catch(() => undefined));
    return { name, section, use, plugin: found };
  });
  return fileSchema(layout, await Promise.all(described), {
    keys: (section) => inspection.keys(section),
    installed: (section) => loader.installed(prefixOf(section)),
  });
}
