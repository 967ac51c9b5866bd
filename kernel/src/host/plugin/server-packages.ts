import { realpathSync } from 'node:fs';
import { findPackageJSON, registerHooks } from 'node:module';
import { dirname, isAbsolute, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { KERNEL } from '../base/kernel-package.js';
import type { PluginIdentity } from '../base/problem.js';
import { packageOf, readManifest } from './manifest.js';

/** The scope of packages that a plugin outside of the server's folder shares with the server. */
const SCOPE = `${KERNEL.name.split('/')[0]}/`;

/** A copy of this package that a plugin imports instead of this one. */
export interface KernelCopy extends PluginIdentity {
  /** What to do about it. */
  readonly cure: string;
}

/**
 * Finds the copy of this package that a module imports, if it is not this one.
 *
 * @param isServers the module belongs to the package of the server, not to one of its own.
 */
export function kernelCopy(url: string, modulePath: string, isServers: boolean): KernelCopy | undefined {
  const path = kernelOf(url);
  if (path === undefined || path === OWN_FOLDER) return undefined;
  return {
    name: KERNEL.name,
    version: readManifest(path)?.version ?? '0.0.0',
    path,
    cure: isServers ? OWN_PROGRAM : cureOfCopy(modulePath),
  };
}

const OWN_FOLDER = realpathSync(KERNEL.path);

/** The folder of the kernel that a module imports, or undefined if it finds none. */
function kernelOf(url: string): string | undefined {
  try {
    return dirname(realpathSync(findPackageJSON(KERNEL.name, url) ?? KERNEL.path));
  } catch {
    return undefined;
  }
}

/** The server's folder has the copy: this program is another one, such as a global one. */
const OWN_PROGRAM = "run the program that is installed in the server's folder: npx plugboard";

function cureOfCopy(modulePath: string): string {
  const { folder, dependencies } = packageOf(modulePath) ?? {};
  const manifest = folder === undefined ? "the plugin's package.json" : join(folder, 'package.json');
  if (dependencies?.[KERNEL.name] !== undefined) {
    return `move it from dependencies to peerDependencies in ${manifest}, then install the plugin again`;
  }
  if (!isInstalled(modulePath)) {
    const install = `npm install --install-links ${folder ?? 'FOLDER'}`;
    return `this is expected while you develop the plugin; to run it, run ${install} in the server's folder, and write its name after "use"`;
  }
  return `make it a peerDependency in ${manifest}, then run npm dedupe`;
}

/** Where plugins outside resolve imports, by their folders. Per process, as Node.js's hooks. */
const providers = new Map<string, readonly string[]>();

/**
 * Lets a plugin that is used by path, and perhaps lies outside of the server's folder, import this
 * package and the plugins that it lists as peers: where Node.js finds none, they are the server's.
 * @param serverFolders where the server looks for packages, besides this package's own folder.
 */
export function provideServerPackages(url: string, path: string, serverFolders: readonly string[]): void {
  if (isInstalled(path)) return;
  const { folder = dirname(path), peerDependencies = {} } = packageOf(path) ?? {};
  const peers = Object.keys(peerDependencies).filter((name) => name.startsWith(SCOPE));
  if ([KERNEL.name, ...peers].every((name) => finds(name, url))) return;
  if (providers.size === 0) registerHooks({ resolve: resolvePackage });
  providers.set(folder, [...new Set([...(providers.get(folder) ?? []), ...serverFolders, KERNEL.path])]);
}

/** Resolves a package of the scope as Node.js does, or else from the folders of the server. */
const resolvePackage: Parameters<typeof registerHooks>[0]['resolve'] = (specifier, context, next) => {
  if (!specifier.startsWith(SCOPE)) return next(specifier, context);
  let missing: unknown;
  for (const parentURL of [context.parentURL, ...parentsFor(specifier, context.parentURL)]) {
    try {
      return next(specifier, { ...context, parentURL });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
      missing ??= error;
    }
  }
  throw missing; // it names the module that imports the package
};

/** The modules to resolve a package from, besides the one that imports it. */
function parentsFor(specifier: string, importer = ''): string[] {
  const isKernel = specifier === KERNEL.name || specifier.startsWith(`${KERNEL.name}/`);
  return (isKernel ? [KERNEL.path] : foldersFor(importer)).map((folder) => pathToFileURL(join(folder, 'package.json')).href);
}

/** The folders of the servers that use a module's plugin, or of all servers if it has none. */
function foldersFor(importer: string): readonly string[] {
  const own = [...providers].filter(([folder]) => importer.startsWith(`${pathToFileURL(folder).href}/`));
  return (own.length > 0 ? own : [...providers]).flatMap(([, folders]) => folders);
}

/** What to do about a plugin that needs a newer kernel. */
export function updateOfKernel(path: string): string {
  const { name, peerDependencies, dependencies } = (isAbsolute(path) && packageOf(path)) || {};
  const range = peerDependencies?.[KERNEL.name] ?? dependencies?.[KERNEL.name];
  const isVersion = range !== undefined && !range.includes(':');
  return `update ${KERNEL.name}${isVersion ? ` (the package.json of ${name} asks for ${range})` : ''}`;
}

/** Whether a module is part of a package that npm installed. */
export function isInstalled(path: string): boolean {
  return /[\\/]node_modules[\\/]/.test(path);
}

/** Whether a module can import a package. */
function finds(name: string, url: string): boolean {
  try {
    findPackageJSON(name, url);
    return true;
  } catch {
    return false;
  }
}
