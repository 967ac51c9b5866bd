import { existsSync } from 'node:fs';
import { findPackageJSON, registerHooks } from 'node:module';
import { isAbsolute, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Whether a package, or the file of a path, is there. Loads nothing. */
export function isInstalled(provider: string, folder: string): boolean {
  if (isPath(provider)) return existsSync(resolve(folder, provider));
  return foldersOf(folder).some((from) => hasPackage(provider, from));
}

/**
 * Resolves the module of a provider as `use` of an entry is resolved: from the configuration's
 * folder, else from the working folder.
 *
 * @throws Error if there is no such module.
 */
export function resolveProvider(provider: string, folder: string): string {
  if (isPath(provider)) return pathToFileURL(resolve(folder, provider)).href;
  const from = foldersOf(folder).find((one) => hasPackage(provider, one)) ?? folder;
  const parentURL = moduleUrlIn(from);
  const hooks = registerHooks({ resolve: (specifier, context, next) => next(specifier, { ...context, parentURL }) });
  try {
    return import.meta.resolve(provider);
  } finally {
    hooks.deregister();
  }
}

function isPath(provider: string): boolean {
  return provider.startsWith('.') || isAbsolute(provider);
}

function foldersOf(folder: string): readonly string[] {
  return [folder, process.cwd()];
}

function hasPackage(name: string, folder: string): boolean {
  try {
    return findPackageJSON(name, moduleUrlIn(folder)) !== undefined;
  } catch {
    return false;
  }
}

/** The URL of a module in the folder, which does not have to exist. */
function moduleUrlIn(folder: string): string {
  return pathToFileURL(join(folder, 'plugboard.js')).href;
}
