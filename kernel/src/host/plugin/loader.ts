import { readFileSync, statSync } from 'node:fs';
import { findPackageJSON, registerHooks } from 'node:module';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { hostError, reasonOf } from '../base/errors.js';
import type { PluginIdentity } from '../base/problem.js';
import { OptionSchema } from '../options/schema.js';
import { API_VERSION, type DefinedPlugin, PLUGIN_BRAND } from './plugin.js';

/** A plugin that was found on this machine and imported. */
export interface LoadedPlugin extends PluginIdentity {
  readonly definition: DefinedPlugin;
  readonly options: OptionSchema;
}

/** The name of an npm package, with or without a scope, and optionally a subpath. */
const PACKAGE_NAME = /^(@[\w.~-]+\/)?[\w~-][\w.~-]*(\/[\w.~-]+)*$/;

/** The path and the version of a plugin that a program gave as an object. */
const OBJECT_PATH = '(object)';
const OBJECT_VERSION = '0.0.0';

/** Finds and imports plugins by the `use` of their entries. Each module is imported once, however many entries use it. */
export class Loader {
  readonly #fileFolder: string;
  readonly #folders: readonly string[];
  readonly #loaded = new Map<string, Promise<LoadedPlugin>>();
  readonly #adopted = new Map<DefinedPlugin, LoadedPlugin>();

  /** @param cwd where packages are searched after the file's folder and before the kernel's own. */
  constructor(fileFolder: string, cwd: string) {
    this.#fileFolder = fileFolder;
    this.#folders = [...new Set([fileFolder, cwd, import.meta.dirname])];
  }

  /** @throws HostError if there is no such plugin, or if it cannot be used. */
  async load(use: string, prefix: string): Promise<LoadedPlugin> {
    const url = this.#resolve(use, prefix);
    const loading = this.#loaded.get(url) ?? importPlugin(url);
    this.#loaded.set(url, loading);
    return loading;
  }

  /** Uses a plugin object that a program gave. @throws HostError if this kernel cannot use it. */
  adopt(definition: DefinedPlugin): LoadedPlugin {
    const loaded = this.#adopted.get(definition) ?? loadedPlugin(definition, OBJECT_PATH, OBJECT_VERSION);
    this.#adopted.set(definition, loaded);
    return loaded;
  }

  #resolve(use: string, prefix: string): string {
    if (/^\.\.?\//.test(use) || isAbsolute(use)) return resolvePath(resolve(this.#fileFolder, use));
    const names = packageNames(use, prefix);
    if (!names.every((name) => PACKAGE_NAME.test(name))) throw hostError('USE_INVALID', use);
    const found = names.map((name) => this.#resolvePackage(name)).find((url) => url !== undefined);
    if (found === undefined) throw hostError('PLUGIN_NOT_INSTALLED', packageName(use, prefix));
    return found;
  }

  /** Returns undefined if the package is not installed. */
  #resolvePackage(name: string): string | undefined {
    for (const folder of this.#folders) {
      try {
        findPackageJSON(name, from(folder)); // throws if there is no such package
        return resolveFrom(name, folder);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') continue;
        throw hostError('PLUGIN_UNRESOLVED', name, reasonOf(error));
      }
    }
    return undefined;
  }
}

/** Returns the packages that a `use` can mean, in order: `@plugboard/<prefix>-x`, `plugboard-<prefix>-x`, then `x` itself. */
function packageNames(use: string, prefix: string): string[] {
  if (use.includes('/')) return [use];
  return [packageName(use, prefix), prefix === '' ? `plugboard-${use}` : `plugboard-${prefix}-${use}`, use];
}

/** Returns the package of a `use`: a short name `x` means `@plugboard/<prefix>-x`, or `@plugboard/x` if the prefix is empty. */
export function packageName(use: string, prefix: string): string {
  if (use.includes('/')) return use;
  return prefix === '' ? `@plugboard/${use}` : `@plugboard/${prefix}-${use}`;
}

/** The URL of a module in the folder, which does not have to exist. */
function from(folder: string): string {
  return pathToFileURL(join(folder, 'plugboard.js')).href;
}

/** Resolves a package as Node.js does from a folder: `import.meta.resolve` with another start. */
function resolveFrom(name: string, folder: string): string {
  const parentURL = from(folder);
  const hooks = registerHooks({ resolve: (specifier, context, next) => next(specifier, { ...context, parentURL }) });
  try {
    return import.meta.resolve(name);
  } finally {
    hooks.deregister();
  }
}

/** Resolves the path of a module or of a package's folder. */
function resolvePath(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) throw hostError('PLUGIN_NOT_FOUND', path);
  if (!stat.isDirectory()) return pathToFileURL(path).href;
  const { name, exports, main } = readManifest(path) ?? {};
  if (name !== undefined && exports !== undefined) return resolveFrom(name, path);
  return pathToFileURL(join(path, main ?? 'index.js')).href;
}

async function importPlugin(url: string): Promise<LoadedPlugin> {
  const path = fileURLToPath(url);
  const module = await import(url).catch((error: unknown) => {
    const missing = (error as { url?: string }).url === url;
    throw missing ? hostError('PLUGIN_NOT_BUILT', path) : hostError('PLUGIN_IMPORT_FAILED', path, reasonOf(error));
  });
  return loadedPlugin(module.default, path, versionOf(path));
}

/** @throws HostError if the value is not a plugin, or not one that this kernel can use. */
function loadedPlugin(value: unknown, path: string, version: string): LoadedPlugin {
  const definition = checkDefinition(value, path);
  try {
    return { definition, options: new OptionSchema(definition.configSchema), name: definition.name, version, path };
  } catch (error) {
    throw hostError('OPTION_SCHEMA_INVALID', `the plugin ${definition.name} at ${path}`, reasonOf(error));
  }
}

/** Whether a value was made by `definePlugin`, of this copy of the kernel or of another. */
export function isPlugin(value: unknown): value is DefinedPlugin {
  return typeof value === 'object' && value !== null && PLUGIN_BRAND in value;
}

function checkDefinition(value: unknown, path: string): DefinedPlugin {
  if (!isPlugin(value)) throw hostError('NOT_A_PLUGIN', path);
  const { name, apiVersion, configSchema, register }: Partial<DefinedPlugin> = value;
  const about = `the plugin ${name ?? 'without a name'} at ${path}`;
  if (typeof apiVersion !== 'number' || apiVersion > API_VERSION) throw hostError('API_TOO_NEW', about, apiVersion, API_VERSION);
  if (apiVersion < API_VERSION) throw hostError('API_TOO_OLD', about, apiVersion, API_VERSION);
  if (typeof name !== 'string') throw hostError('DEFINITION_INCOMPLETE', about, 'name');
  if (typeof register !== 'function') throw hostError('DEFINITION_INCOMPLETE', about, 'register');
  if (configSchema?.type !== 'object') throw hostError('DEFINITION_INCOMPLETE', about, "configSchema with type: 'object'");
  return value;
}

/** Returns the version of a module's package. Nested package.json files without a version are skipped. */
function versionOf(path: string): string {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const version = readManifest(folder)?.version;
    if (version !== undefined) return version;
    if (folder === dirname(folder)) return '0.0.0';
  }
}

interface Manifest {
  readonly name?: string;
  readonly version?: string;
  readonly exports?: unknown;
  readonly main?: string;
}

function readManifest(folder: string): Manifest | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
  } catch {
    return undefined; // missing or unreadable: Node.js continues in the parent folder, too
  }
}
