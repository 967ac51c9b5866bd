import { realpathSync } from 'node:fs';
import { findPackageJSON, registerHooks } from 'node:module';
import { dirname, isAbsolute, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type HostError, hostError, reasonOf } from '../base/errors.js';
import { KERNEL } from '../base/kernel-package.js';
import type { PluginIdentity } from '../base/problem.js';
import { packageOf, readManifest } from './manifest.js';
import { isPlugin } from './plugin.js';

/** What the kernel uses of a plugin's module. */
export interface PluginModule {
  /** What `definePlugin` returned, perhaps of another copy of the kernel. */
  readonly default: unknown;
  /** The plugin's schema as the build compiled it, if the plugin is bundled. */
  readonly compiledOptions?: unknown;
}

/**
 * Imports the module of a plugin.
 * @param limit milliseconds that the module may take.
 * @throws HostError if there is no such module, if it cannot be loaded, or if its default export is
 * not a plugin.
 */
export async function importPlugin(url: string, path: string, limit: number): Promise<PluginModule> {
  if (!findsKernel(url)) provideKernel();
  const module = await withinLimit(import(url), path, limit).catch(async (error: unknown) => {
    throw await importError(error, url, path);
  });
  if (isPlugin(module.default)) return module;
  if (isPlugin(module.default?.default)) throw hostError('PLUGIN_COMMONJS', path);
  const [named] = Object.entries(module).find(([, value]) => isPlugin(value)) ?? [];
  if (named !== undefined)
    throw hostError('NOT_A_PLUGIN', path, `definePlugin() made its export "${named}", not its default export`);
  const found = 'default' in module ? 'its default export was not made by definePlugin()' : 'it has no default export';
  throw hostError('NOT_A_PLUGIN', path, found);
}

/** What to do about a plugin that needs a newer kernel. */
export function updateOfKernel(path: string): string {
  const { name, peerDependencies, dependencies } = (isAbsolute(path) && packageOf(path)) || {};
  const range = peerDependencies?.[KERNEL.name] ?? dependencies?.[KERNEL.name];
  const wanted = range === undefined ? '' : ` (the package.json of ${name} asks for ${range})`;
  return `update ${KERNEL.name}${wanted}`;
}

/** Whether a module can import this package. */
function findsKernel(url: string): boolean {
  try {
    findPackageJSON(KERNEL.name, url);
    return true;
  } catch {
    return false;
  }
}

/** Finds another copy of this package that a module imports instead of this one. */
export function kernelCopy(url: string): PluginIdentity | undefined {
  if (!findsKernel(url)) return undefined;
  const path = dirname(realpathSync(findPackageJSON(KERNEL.name, url) ?? KERNEL.path));
  if (path === realpathSync(KERNEL.path)) return undefined;
  return { name: KERNEL.name, version: readManifest(path)?.version ?? '0.0.0', path };
}

let isProvided = false;

/**
 * Lets modules outside of the server's folder import this package: where Node.js finds none, it is
 * the server's own.
 */
function provideKernel(): void {
  if (isProvided) return;
  isProvided = true;
  const parentURL = pathToFileURL(join(KERNEL.path, 'package.json')).href;
  registerHooks({
    resolve(specifier, context, next) {
      if (specifier !== KERNEL.name && !specifier.startsWith(`${KERNEL.name}/`)) return next(specifier, context);
      try {
        return next(specifier, context);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
        return next(specifier, { ...context, parentURL });
      }
    },
  });
}

/**
 * @throws HostError if the promise is not settled in time. The timer keeps the process alive, which
 * would end silently otherwise.
 */
async function withinLimit<T>(promise: Promise<T>, path: string, limit: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(hostError('PLUGIN_IMPORT_TIMED_OUT', path, limit / 1000)), limit);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function importError(error: unknown, url: string, path: string): Promise<HostError | unknown> {
  const { code, message = '', url: missing } = error as { code?: string; message?: string; url?: string };
  if (code === 'PLUGIN_IMPORT_TIMED_OUT') return error;
  if (missing === url) return hostError('PLUGIN_NOT_BUILT', path);
  if (/^Cannot use import statement outside a module|^Unexpected \w+ 'export'/.test(message)) {
    return hostError('PLUGIN_COMMONJS', path);
  }
  const [, specifier = '', name = ''] =
    /^The requested module '([^']+)' does not provide an export named '([^']+)'/.exec(message) ?? [];
  if (specifier === KERNEL.name || specifier.startsWith(`${KERNEL.name}/`)) {
    const shown = specifier === KERNEL.name ? `${KERNEL.name} ${KERNEL.version}` : `${specifier} (${KERNEL.version})`;
    return hostError('EXPORT_MISSING', path, name, shown, (await importFrom(name)) ?? updateOfKernel(path));
  }
  return hostError('PLUGIN_IMPORT_FAILED', path, reasonOf(error));
}

/** Finds the import path of this package that has a name. */
async function importFrom(name: string): Promise<string | undefined> {
  const subpaths = Object.keys((readManifest(KERNEL.path)?.exports ?? {}) as object).filter((path) => !path.endsWith('.json'));
  for (const subpath of subpaths) {
    const specifier = `${KERNEL.name}${subpath.slice(1)}`;
    if (name in (await import(specifier))) return `import it from ${specifier}`;
  }
  return undefined;
}
