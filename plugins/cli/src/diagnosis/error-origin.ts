import { dirname, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PluginError, type PluginInfo } from '@plugboard/kernel/internal';

/** The plugin that an error comes from, as log fields. */
interface ErrorOrigin {
  readonly plugin: string;
  /** The entries that use the plugin, for example `tools.files`. */
  readonly entry: string;
}

/**
 * Finds the plugin that an error comes from: the first one whose code is on the stack of the error,
 * or of its causes. Returns undefined if there is none, for example if only Node.js itself is on
 * the stack.
 */
export function originOf(error: unknown, plugins: readonly PluginInfo[]): ErrorOrigin | undefined {
  try {
    return found(error, plugins);
  } catch {
    return undefined; // what was thrown cannot be read
  }
}

function found(error: unknown, plugins: readonly PluginInfo[]): ErrorOrigin | undefined {
  for (let current = error, depth = 0; current instanceof Error && depth < 8; current = current.cause, depth++) {
    if (current instanceof PluginError) return { plugin: current.plugin.name, entry: current.entry };
    for (const file of filesOf(current.stack ?? '')) {
      const owners = ownersOf(file, plugins);
      const [owner] = owners;
      if (owner) return { plugin: owner.name, entry: owners.map(({ entry }) => entry).join(', ') };
    }
  }
  return undefined;
}

/** The files on a stack, from the top. */
function filesOf(stack: string): string[] {
  const frames = stack.matchAll(/^ +at (?:[^()\n]* \(|async )?(?<file>(?:file:\/\/)?\/[^()\n]+):\d+:\d+\)?$/gm);
  return Array.from(frames, ({ groups }) => pathOf(groups?.file ?? ''));
}

function pathOf(file: string): string {
  try {
    return file.startsWith('file:') ? fileURLToPath(file) : file;
  } catch {
    return file;
  }
}

/** The entries whose plugin a file belongs to: its module, or a file in its folder. */
function ownersOf(file: string, plugins: readonly PluginInfo[]): readonly PluginInfo[] {
  const exact = plugins.filter(({ path }) => path === file);
  if (exact.length > 0) return exact;
  return plugins.filter(({ path }) => {
    const folder = dirname(path) + sep;
    return file.startsWith(folder) && !file.slice(folder.length).includes(`node_modules${sep}`);
  });
}
