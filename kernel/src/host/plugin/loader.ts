import { existsSync, statSync } from 'node:fs';
import { findPackageJSON, registerHooks } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { hostError, reasonOf } from '../base/errors.js';
import { KERNEL } from '../base/kernel-package.js';
import type { PluginIdentity } from '../base/problem.js';
import { isCompiledSchema } from '../options/compiled-schema.js';
import { isModulePath, isPackageName } from '../options/package-name.js';
import { OptionSchema } from '../options/schema.js';
import { type Diagnosis, NO_DIAGNOSIS } from './diagnosis.js';
import { importPlugin, type PluginModule } from './import-plugin.js';
import { rejectModule } from './import-url.js';
import { packageOf, readManifest } from './manifest.js';
import { installedPlugins, similarFile, similarPlugin, type UseHints } from './missing-plugin.js';
import { API_VERSION, type DefinedPlugin, isPlugin } from './plugin.js';
import { type KernelCopy, kernelCopy, updateOfKernel } from './server-packages.js';

/** A plugin that was found on this machine and imported. */
export interface LoadedPlugin extends PluginIdentity {
  readonly definition: DefinedPlugin;
  readonly options: OptionSchema;
  /** When its module was last changed, before it was loaded: milliseconds of the file system. */
  readonly modified?: number | undefined;
  /** The plugin's own copy of the kernel, if it imports another one than this program. */
  readonly kernelCopy?: KernelCopy | undefined;
}

/** The path and the version of a plugin that a program gave as an object. */
const OBJECT_PATH = '(object)';
const OBJECT_VERSION = '0.0.0';

/** Milliseconds. */
const IMPORT_LIMIT = 10_000;

interface LoaderOptions {
  /** The sections of the file, with what short names mean in them. */
  readonly sections?: Readonly<Record<string, { readonly prefix: string }>>;
  readonly importLimit?: number;
  readonly diagnosis?: Diagnosis | undefined;
}

/**
 * Finds and imports plugins by the `use` of their entries. Each module is imported once, however
 * many entries use it. One that is rejected is imported again when it is loaded the next time, for
 * example by a reload after a build.
 */
export class Loader {
  readonly #fileFolder: string;
  readonly #folders: readonly string[];
  readonly #sections: NonNullable<LoaderOptions['sections']>;
  readonly #importLimit: number;
  readonly #diagnosis: Diagnosis;
  readonly #loaded = new Map<string, Promise<LoadedPlugin>>();
  readonly #adopted = new Map<DefinedPlugin, LoadedPlugin>();

  /**
   * @param cwd where packages are searched after the file's folder and before the kernel's own.
   * @param options.importLimit milliseconds that a module may take to load.
   */
  constructor(fileFolder: string, cwd: string, options: LoaderOptions = {}) {
    const { importLimit = IMPORT_LIMIT, diagnosis = NO_DIAGNOSIS, sections = {} } = options;
    this.#fileFolder = fileFolder;
    this.#sections = sections;
    this.#importLimit = importLimit;
    this.#diagnosis = diagnosis;
    this.#folders = [...new Set([fileFolder, cwd, import.meta.dirname])];
  }

  /** @throws HostError if the plugin is not found or cannot be used. */
  async load(use: string, prefix: string, hints: UseHints = {}): Promise<LoadedPlugin> {
    const url = this.#resolve(use, prefix, hints);
    const loading = this.#loaded.get(url) ?? this.#import(url);
    this.#loaded.set(url, loading);
    return loading;
  }

  /** Uses a plugin object that a program gave. @throws HostError if this kernel cannot use it. */
  adopt(definition: DefinedPlugin): LoadedPlugin {
    const loaded = this.#adopted.get(definition) ?? loadedPlugin({ default: definition }, OBJECT_PATH, OBJECT_VERSION);
    this.#adopted.set(definition, loaded);
    return loaded;
  }

  async #import(url: string): Promise<LoadedPlugin> {
    const path = fileURLToPath(url);
    const owner = packageOf(path);
    // A plugin in the folder of the configuration has no package of its own.
    const hasOwnPackage = owner !== undefined && relative(owner.folder, this.#fileFolder).startsWith('..');
    const shown = hasOwnPackage ? `${path} (${owner.name} ${owner.version})` : path;
    try {
      const modified = modifiedAt(path);
      const location = { url, path, shown, packageName: owner?.name };
      const { explainImport } = this.#diagnosis;
      const module = await importPlugin(location, this.#folders, this.#importLimit, explainImport);
      const copy = kernelCopy(url, path, !hasOwnPackage);
      return { ...loadedPlugin(module, path, owner?.version ?? '0.0.0'), modified, kernelCopy: copy };
    } catch (error) {
      this.#loaded.delete(url);
      rejectModule(url);
      throw error;
    }
  }

  #resolve(use: string, prefix: string, { isKey = false, usual, neededBy }: UseHints): string {
    if (isModulePath(use)) return resolvePath(resolve(this.#fileFolder, use));
    const names = packageNames(use, prefix);
    if (!names.every(isPackageName)) throw hostError('USE_INVALID', use);
    for (const name of names) {
      const url = this.#resolvePackage(name, neededBy === undefined ? [] : [dirname(neededBy)]);
      if (url !== undefined) return url;
    }
    const likely = usual ?? this.#similar(use, prefix);
    const sections = usual !== undefined || (likely !== undefined && isModulePath(likely)) ? [] : this.sectionsOf(use, prefix);
    if (sections.length > 0) throw hostError('PLUGIN_OF_OTHER_SECTION', use, sections);
    throw hostError('PLUGIN_NOT_INSTALLED', names, isKey, likely);
  }

  #similar(use: string, prefix: string): string | undefined {
    const written = packageName('', prefix);
    const short = prefix !== '' && use.startsWith(written) ? use.slice(written.length) : use;
    return similarPlugin(short, this.#fileFolder, this.installed(prefix));
  }

  /** The missing package of a `use`. Not of a path, a mistyped name or another section's plugin. */
  missingPlugin(use: string, prefix: string): string | undefined {
    const names = packageNames(use, prefix);
    if (isModulePath(use) || !names.every(isPackageName) || names.some((name) => this.isInstalled(name))) return undefined;
    return this.#similar(use, prefix) === undefined && this.sectionsOf(use, prefix).length === 0 ? names[0] : undefined;
  }

  /** The sections, except those with a prefix, that have an installed plugin of this short name. */
  sectionsOf(name: string, except?: string): readonly string[] {
    const others = Object.entries(this.#sections).filter(([, { prefix }]) => prefix !== except);
    return others.flatMap(([section, { prefix }]) => (this.installed(prefix).includes(name) ? [section] : []));
  }

  /** Whether a package, or the module of a path, is there. Loads nothing. */
  isInstalled(name: string): boolean {
    if (isModulePath(name)) return existsSync(resolve(this.#fileFolder, name));
    return this.#folders.some((folder) => hasPackage(name, folder));
  }

  /** The short names of the plugins that are installed where packages are searched. */
  installed(prefix: string): readonly string[] {
    return prefix === '' ? [] : installedPlugins(this.#folders, prefix);
  }

  /** Returns undefined if the package is not installed. */
  #resolvePackage(name: string, otherFolders: readonly string[]): string | undefined {
    for (const folder of [...this.#folders, ...otherFolders]) {
      try {
        return resolveFrom(name, folder);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ERR_MODULE_NOT_FOUND') continue;
        throw hostError('PLUGIN_UNRESOLVED', name, reasonOf(error));
      }
    }
    return undefined;
  }
}

/** What a `use` can mean: `@plugboard/<prefix>-x`, `plugboard-<prefix>-x`, then `x` itself. */
function packageNames(use: string, prefix: string): string[] {
  if (use.includes('/')) return [use];
  return [packageName(use, prefix), prefix === '' ? `plugboard-${use}` : `plugboard-${prefix}-${use}`, use];
}

/** The package of a `use`: `x` means `@plugboard/<prefix>-x`, without a prefix `@plugboard/x`. */
export function packageName(use: string, prefix: string): string {
  if (use.includes('/')) return use;
  return prefix === '' ? `@plugboard/${use}` : `@plugboard/${prefix}-${use}`;
}

/** The URL of a module in the folder, which does not have to exist. */
function moduleUrlIn(folder: string): string {
  return pathToFileURL(join(folder, 'plugboard.js')).href;
}

function hasPackage(name: string, folder: string): boolean {
  try {
    return findPackageJSON(name, moduleUrlIn(folder)) !== undefined;
  } catch {
    return false;
  }
}

/** Resolves a package as Node.js does from a folder: `import.meta.resolve` with another start. */
function resolveFrom(name: string, folder: string): string {
  const parentURL = moduleUrlIn(folder);
  const hooks = registerHooks({ resolve: (specifier, context, next) => next(specifier, { ...context, parentURL }) });
  try {
    return import.meta.resolve(name);
  } finally {
    hooks.deregister();
  }
}

/** When a module was last changed; undefined if it is gone. */
export function modifiedAt(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}

/** Resolves the path of a module or of a package's folder. */
function resolvePath(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) throw hostError('PLUGIN_NOT_FOUND', path, similarFile(path));
  if (!stat.isDirectory()) return pathToFileURL(path).href;
  const { name, exports, main } = readManifest(path) ?? {};
  if (name !== undefined && exports !== undefined) return resolveFrom(name, path);
  if (main === undefined && !existsSync(join(path, 'index.js'))) throw hostError('PLUGIN_FOLDER_EMPTY', path);
  return pathToFileURL(join(path, main ?? 'index.js')).href;
}

/** @throws HostError if the value is not a plugin, or not one that this kernel can use. */
function loadedPlugin(module: PluginModule, path: string, version: string): LoadedPlugin {
  const definition = checkDefinition(module.default, path, version);
  const { compiledOptions } = module;
  const compiled = isCompiledSchema(compiledOptions) ? compiledOptions : undefined;
  try {
    return { definition, options: new OptionSchema(definition.configSchema, compiled), name: definition.name, version, path };
  } catch (error) {
    throw hostError('OPTION_SCHEMA_INVALID', `the plugin ${definition.name} ${version} at ${path}`, reasonOf(error));
  }
}

function checkDefinition(value: unknown, path: string, version: string): DefinedPlugin {
  if (!isPlugin(value)) throw hostError('NOT_A_PLUGIN', path, 'it has no default export that definePlugin() made');
  const { name, apiVersion, configSchema, register }: Partial<DefinedPlugin> = value;
  const about = `the plugin ${name ?? 'without a name'} ${version} at ${path}`;
  if (typeof name !== 'string') throw hostError('DEFINITION_INCOMPLETE', about, 'name');
  if (typeof apiVersion !== 'number') throw hostError('DEFINITION_INCOMPLETE', about, `apiVersion, for example ${API_VERSION}`);
  if (apiVersion > API_VERSION) throw hostError('API_TOO_NEW', about, apiVersion, ownVersion(), updateOfKernel(path));
  if (apiVersion < API_VERSION) throw hostError('API_TOO_OLD', about, apiVersion, ownVersion());
  if (typeof register !== 'function') throw hostError('DEFINITION_INCOMPLETE', about, 'register');
  if (configSchema?.type !== 'object') throw hostError('DEFINITION_INCOMPLETE', about, "configSchema with type: 'object'");
  return value;
}

function ownVersion(): string {
  return `${KERNEL.name} ${KERNEL.version} (plugin API ${API_VERSION})`;
}
