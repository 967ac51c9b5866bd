import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type HostError, hostError, reasonOf, reasonWithPlace } from '../base/errors.js';
import { KERNEL } from '../base/kernel-package.js';
import { suggestion } from '../base/nearest.js';
import { placeOf } from '../base/place.js';
import { packageOf, readManifest } from './manifest.js';
import { updateOfKernel } from './server-packages.js';

/** Milliseconds for Node.js to find a syntax error. */
const SYNTAX_CHECK_LIMIT = 5_000;

/** Where the module of a plugin is. */
export interface ModuleLocation {
  readonly url: string;
  readonly path: string;
  /** The path for messages, with the name and version of the module's package if it has its own. */
  readonly shown: string;
  /** The module's package; undefined if it has none. */
  readonly packageName: string | undefined;
}

/** Says why a module could not be imported, and what to do about it. */
export async function importError(error: unknown, { url, path, shown }: ModuleLocation): Promise<HostError> {
  const { code, message = '', url: missing } = (error ?? {}) as { code?: string; message?: string; url?: string };
  if (code === 'PLUGIN_IMPORT_TIMED_OUT') return error as HostError;
  if (missing === url) return hostError('PLUGIN_NOT_BUILT', shown);
  if (isCommonJs(message)) return hostError('PLUGIN_COMMONJS', shown);
  if (code === 'ERR_IMPORT_ATTRIBUTE_MISSING') return hostError('NOT_A_PLUGIN', shown, 'it is a JSON file');
  if (/unknown.file.extension/i.test(message) && message.includes(path)) {
    return hostError('NOT_A_PLUGIN', shown, 'it is not a JavaScript or TypeScript module');
  }
  if (code === 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING') return hostError('PLUGIN_TYPESCRIPT_INSTALLED', shown);
  if (code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') return hostError('PLUGIN_TYPESCRIPT_SYNTAX', shown, reasonOf(error));
  const [, name = '', importer = ''] = /^Cannot find (?:package|module) '([^']+)' imported from (\S+)/.exec(message) ?? [];
  if (name !== '') return missingModule(name, importer, missing, shown);
  const [, specifier = '', imported = ''] =
    /^The requested module '([^']+)' does not provide an export named '([^']+)'/.exec(message) ?? [];
  if (specifier === KERNEL.name || specifier.startsWith(`${KERNEL.name}/`)) {
    const own = specifier === KERNEL.name ? `${KERNEL.name} ${KERNEL.version}` : `${specifier} (${KERNEL.version})`;
    return hostError('EXPORT_MISSING', shown, imported, own, await cureOfExport(specifier, imported, path));
  }
  if (error instanceof SyntaxError && placeOf(error) === undefined) {
    return hostError('PLUGIN_IMPORT_FAILED', shown, `${message}${await placeOfSyntaxError(path)}`);
  }
  return hostError('PLUGIN_IMPORT_FAILED', shown, reasonWithPlace(error));
}

/** Whether Node.js ran a module, or tried to, as CommonJS. */
function isCommonJs(message: string): boolean {
  return [
    /^Cannot use import statement outside a module/,
    /^Unexpected \w+ 'export'/,
    /^Cannot require\(\) ES Module/,
    /^(?:require|module|exports) is not defined in ES module scope/,
  ].some((pattern) => pattern.test(message));
}

/** A module that the plugin imports does not exist: a package, or a file of its own. */
function missingModule(name: string, by: string, missing: string | undefined, shown: string): HostError {
  const importer = by.startsWith('file:') ? fileURLToPath(by) : by;
  if (missing === undefined && !isAbsolute(name)) {
    const owner = packageOf(importer);
    const listed = { ...owner?.dependencies, ...owner?.peerDependencies, ...owner?.devDependencies };
    const isListed = Object.hasOwn(listed, packageName(name));
    return hostError('DEPENDENCY_MISSING', shown, name, importer, owner?.folder ?? dirname(importer), isListed);
  }
  const file = missing === undefined ? name : fileURLToPath(missing);
  const source = file.replace(/\.([cm]?)js$/, '.$1ts');
  return hostError('IMPORTED_FILE_MISSING', shown, file, importer, source !== file && existsSync(source) ? source : undefined);
}

/** `@you/lib` of `@you/lib/sub`. */
function packageName(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}

/** What to do about an import of a name that this package does not export there. */
async function cureOfExport(specifier: string, name: string, path: string): Promise<string> {
  const subpaths = Object.keys((readManifest(KERNEL.path)?.exports ?? {}) as object).filter((key) => !key.endsWith('.json'));
  for (const subpath of subpaths) {
    const candidate = `${KERNEL.name}${subpath.slice(1)}`;
    if (name in (await import(candidate))) return `import it from ${candidate}`;
  }
  const similar = suggestion(name, Object.keys(await import(specifier)));
  return similar.startsWith(', did you mean') ? `${similar.slice(2)} If not, ${updateOfKernel(path)}` : updateOfKernel(path);
}

/** Has Node.js check a module, for its errors of syntax in ES modules name no place. */
async function placeOfSyntaxError(path: string): Promise<string> {
  try {
    await promisify(execFile)(process.execPath, ['--check', path], { timeout: SYNTAX_CHECK_LIMIT });
    return ', in a module that it imports';
  } catch (error) {
    const [first = ''] = String((error as { stderr?: unknown }).stderr).split('\n');
    const [, file, line] = /^(?:file:\/\/)?(\/.*|[A-Za-z]:\\.*):(\d+)$/.exec(first.trim()) ?? [];
    return file === undefined ? '' : `, at ${file}:${line}`;
  }
}
