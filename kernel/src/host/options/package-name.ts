import { isAbsolute } from 'node:path';

/** The name of an npm package, with or without a scope, and optionally a subpath. */
const PACKAGE_NAME = /^(@[\w.~-]+\/)?[\w~-][\w.~-]*(\/[\w.~-]+)*$/;

export function isPackageName(text: string): boolean {
  return PACKAGE_NAME.test(text);
}

/** Whether a text names a module by its path: `./x.js`, `../x.js`, or absolute. */
export function isModulePath(text: string): boolean {
  return /^\.\.?\//.test(text) || isAbsolute(text);
}

export function isPackageOrPath(text: string): boolean {
  return isModulePath(text) || isPackageName(text);
}
