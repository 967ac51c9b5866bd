import type { HostServer } from '@plugboard/kernel/internal';
import { type DescribedEntry, fileSchema } from './file-schema.js';

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
