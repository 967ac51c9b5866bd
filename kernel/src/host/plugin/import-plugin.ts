import { HostError, hostError, reasonWithPlace } from '../base/errors.js';
import { beginCall } from '../base/plugin-calls.js';
import type { Diagnosis, ModuleLocation } from './diagnosis.js';
import { importUrl } from './import-url.js';
import { isPlugin } from './plugin.js';
import { provideServerPackages } from './server-packages.js';

/** What the kernel uses of a plugin's module. */
export interface PluginModule {
  /** What `definePlugin` returned, perhaps of another copy of the kernel. */
  readonly default: unknown;
  /** The plugin's schema as the build compiled it, if the plugin is bundled. */
  readonly compiledOptions?: unknown;
}

/**
 * Imports the module of a plugin.
 * @param serverFolders where the server looks for packages.
 * @param limit milliseconds that the module may take.
 * @param explain says why a module cannot be imported, where it can.
 * @throws HostError if there is no such module, if it cannot be loaded, or if its default export is
 * not a plugin.
 */
export async function importPlugin(
  location: ModuleLocation,
  serverFolders: readonly string[],
  limit: number,
  explain: Diagnosis['explainImport'],
): Promise<PluginModule> {
  const { path, shown, packageName } = location;
  const url = importUrl(location.url);
  provideServerPackages(location.url, path, serverFolders);
  const ended = beginCall({ text: `the import of ${shown}`, path, packageName });
  const loaded = await withinLimit(import(url), shown, limit)
    .finally(ended)
    .catch(async (error: unknown) => {
      if (error instanceof HostError && error.code === 'PLUGIN_IMPORT_TIMED_OUT') throw error;
      const explained = await explain(error, { ...location, url });
      if (explained !== undefined) throw new HostError('PLUGIN_IMPORT_FAILED', explained, { cause: error });
      throw hostError('PLUGIN_IMPORT_FAILED', shown, reasonWithPlace(error));
    });
  // Only sometimes can a CommonJS module require the kernel: not while another plugin imports it.
  if ('module.exports' in loaded && (isPlugin(loaded.default) || isPlugin(loaded.default?.default))) {
    throw hostError('PLUGIN_COMMONJS', shown);
  }
  if (isPlugin(loaded.default)) return loaded;
  const [named] = Object.entries(loaded).find(([, value]) => isPlugin(value)) ?? [];
  if (named !== undefined) {
    throw hostError('NOT_A_PLUGIN', shown, `definePlugin() made its export "${named}", not its default export`);
  }
  if (!('default' in loaded)) throw hostError('NOT_A_PLUGIN', shown, 'it has no default export');
  const found = `its default export is ${kindOf(loaded.default)}, which definePlugin() did not make`;
  throw hostError('NOT_A_PLUGIN', shown, found);
}

function kindOf(value: unknown): string {
  if (typeof value === 'string') return value.length <= 40 ? `the text ${JSON.stringify(value)}` : 'a text';
  if (typeof value === 'function') return /^class\b/.test(String(value)) ? 'a class' : 'a function';
  if (value === null || value === undefined) return String(value);
  if (value instanceof Promise) return 'a promise';
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** @throws HostError if it is not settled in time. The timer keeps the process alive. */
async function withinLimit<T>(promise: Promise<T>, shown: string, limit: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(hostError('PLUGIN_IMPORT_TIMED_OUT', shown, limit / 1000)), limit);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
