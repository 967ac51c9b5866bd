import { readFileSync, statSync } from 'node:fs';
import { findPackageJSON, registerHooks } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { type PluginIdentity, reasonOf } from '../base/errors.js';
import { OptionSchema } from '../options/schema.js';
import { API_VERSION, type DefinedPlugin, PLUGIN_BRAND } from './plugin.js';

/** A plugin on this machine, ready to be given options. */
export interface LoadedPlugin extends PluginIdentity {
  readonly definition: DefinedPlugin;
  readonly options: OptionSchema;
}

/** Why an entry's `use` leads to no plugin. `plugin` is there where one was found that cannot be used. */
export class LoadError extends Error {
  override readonly name = 'LoadError';
  readonly code = 'LOAD';
}

/** An npm package, with or without a scope, and perhaps one of its subpaths. */
const PACKAGE_NAME = /^(@[\w.~-]+\/)?[\w~-][\w.~-]*(\/[\w.~-]+)*$/;

/** Finds and imports what `use` names. Each module is imported once, however many entries use it. */
export class Loader {
  readonly #fileFolder: string;
  readonly #folders: readonly string[];
  readonly #loaded = new Map<string, Promise<LoadedPlugin>>();

  /** @param cwd where packages are looked for after the file's folder and before the kernel's own. */
  constructor(fileFolder: string, cwd: string) {
    this.#fileFolder = fileFolder;
    this.#folders = [...new Set([fileFolder, cwd, import.meta.dirname])];
  }

  /** @throws LoadError */
  async load(use: string, prefix: string): Promise<LoadedPlugin> {
    const url = this.#resolve(use, prefix);
    const loading = this.#loaded.get(url) ?? importPlugin(url);
    this.#loaded.set(url, loading);
    return loading;
  }

  #resolve(use: string, prefix: string): string {
    if (use.startsWith('./') || use.startsWith('../')) return resolvePath(resolve(this.#fileFolder, use));
    const name = packageName(use, prefix);
    if (!PACKAGE_NAME.test(name)) {
      throw new LoadError(
        `"${use}" names no plugin: it is no short name, no package name, and no path that begins with ./ or ../`,
      );
    }
    for (const folder of this.#folders) {
      try {
        findPackageJSON(name, from(folder)); // throws where there is no such package
        return resolveFrom(name, folder);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') continue;
        throw new LoadError(`the package ${name} cannot be loaded: ${reasonOf(error)}`);
      }
    }
    throw new LoadError(`the plugin ${name} is not installed; npm install ${name.startsWith('@') ? name : name.split('/')[0]}`);
  }
}

/** The package that `use` names: a short name `x` means `@plugboard/<prefix>-x`, or `@plugboard/x` if the prefix is empty. */
export function packageName(use: string, prefix: string): string {
  if (use.includes('/')) return use;
  return prefix === '' ? `@plugboard/${use}` : `@plugboard/${prefix}-${use}`;
}

/** A module of the folder, whether or not there is one. */
function from(folder: string): string {
  return pathToFileURL(join(folder, 'plugboard.js')).href;
}

/** Where Node.js finds a package, seen from a folder: `import.meta.resolve` with a say in the place that it starts from. */
function resolveFrom(name: string, folder: string): string {
  const parentURL = from(folder);
  const hooks = registerHooks({ resolve: (specifier, context, next) => next(specifier, { ...context, parentURL }) });
  try {
    return import.meta.resolve(name);
  } finally {
    hooks.deregister();
  }
}

/** A path names a module, or the folder of a package. */
function resolvePath(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) throw new LoadError(`there is no plugin at ${path}`);
  if (!stat.isDirectory()) return pathToFileURL(path).href;
  const { name, exports, main } = readManifest(path) ?? {};
  if (name !== undefined && exports !== undefined) return resolveFrom(name, path);
  return pathToFileURL(join(path, main ?? 'index.js')).href;
}

async function importPlugin(url: string): Promise<LoadedPlugin> {
  const path = fileURLToPath(url);
  const module = await import(url).catch((error: unknown) => {
    const missing = (error as { url?: string }).url === url;
    throw new LoadError(
      missing
        ? `the plugin's module ${path} does not exist; was it built?`
        : `the plugin at ${path} cannot be loaded: ${reasonOf(error)}`,
    );
  });
  const definition = checkDefinition(module.default, path);
  const about = `the plugin ${definition.name} at ${path}`;
  try {
    return {
      definition,
      options: new OptionSchema(definition.configSchema),
      name: definition.name,
      version: versionOf(path),
      path,
    };
  } catch (error) {
    throw new LoadError(`${about} has an option schema that cannot be used: ${reasonOf(error)}`);
  }
}

function checkDefinition(value: unknown, path: string): DefinedPlugin {
  if (typeof value !== 'object' || value === null || !(PLUGIN_BRAND in value)) {
    throw new LoadError(`${path} is no plugin: its default export is not made by definePlugin() of @plugboard/kernel`);
  }
  const { name, apiVersion, configSchema, register } = value as Partial<DefinedPlugin>;
  const about = `the plugin ${name ?? 'without a name'} at ${path}`;
  if (typeof apiVersion !== 'number' || apiVersion > API_VERSION) {
    throw new LoadError(
      `${about} is written for plugin API ${apiVersion}, this kernel has ${API_VERSION}; update @plugboard/kernel`,
    );
  }
  if (apiVersion < API_VERSION) {
    throw new LoadError(`${about} is written for plugin API ${apiVersion}, this kernel has ${API_VERSION}; update the plugin`);
  }
  const lacking =
    typeof name !== 'string'
      ? 'name'
      : typeof register !== 'function'
        ? 'register'
        : configSchema?.type !== 'object' && 'configSchema';
  if (lacking) throw new LoadError(`${about} lacks its ${lacking}${lacking === 'configSchema' ? ", of type 'object'" : ''}`);
  return value as DefinedPlugin;
}

/** The version of the package that a module belongs to. A package may hold further package.json files, without a version. */
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
    return undefined; // none here, or none that can be read: Node.js would go on looking too
  }
}
