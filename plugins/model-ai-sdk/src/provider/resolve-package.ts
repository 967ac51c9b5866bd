import { findPackageJSON, registerHooks } from 'node:module';
import { isAbsolute, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The `package.json` of an installed package; undefined for the path of a module. */
export function locate(provider: string, folder: string): string | undefined {
  if (isPath(provider)) return undefined;
  for (const from of foldersOf(folder)) {
    const found = packageJson(provider, from);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Resolves a provider's module as the `use` of an entry. @throws Error if there is none. */
export function resolveProvider(provider: string, folder: string): string {
  if (isPath(provider)) return pathToFileURL(resolve(folder, provider)).href;
  const from = foldersOf(folder).find((one) => packageJson(provider, one) !== undefined) ?? folder;
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
  return [folder, process.cwd(), import.meta.dirname];
}

function packageJson(name: string, folder: string): string | undefined {
  try {
    return findPackageJSON(name, moduleUrlIn(folder));
  } catch {
    return undefined;
  }
}

/** The URL of a module in the folder, which does not have to exist. */
function moduleUrlIn(folder: string): string {
  return pathToFileURL(join(folder, 'plugboard.js')).href;
}
