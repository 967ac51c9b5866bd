import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { suggestion } from '@plugboard/kernel/contracts';
import {
  hostError,
  KERNEL,
  type ModuleLocation,
  packageName,
  packageOf,
  placeOf,
  readManifest,
  reasonOf,
  updateOfKernel,
} from '@plugboard/kernel/internal';

/** Milliseconds for Node.js to find a syntax error. */
const SYNTAX_CHECK_LIMIT = 5_000;

/** Says why a module could not be imported, and the cure; undefined if the error says it. */
export async function explainImport(error: unknown, { url, path, shown }: ModuleLocation): Promise<string | undefined> {
  const { code, message = '', url: missing } = (error ?? {}) as { code?: string; message?: string; url?: string };
  if (missing === url) return `the plugin's module ${shown} does not exist; build the plugin first`;
  if (isCommonJs(message)) return hostError('PLUGIN_COMMONJS', shown).message;
  if (code === 'ERR_IMPORT_ATTRIBUTE_MISSING') return hostError('NOT_A_PLUGIN', shown, 'it is a JSON file').message;
  if (/unknown.file.extension/i.test(message) && message.includes(path)) {
    return hostError('NOT_A_PLUGIN', shown, 'it is not a JavaScript or TypeScript module').message;
  }
  if (code === 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING') return typeScriptInstalled(shown);
  if (code === 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') return typeScriptSyntax(shown, reasonOf(error));
  const [, name = '', importer = ''] = /^Cannot find (?:package|module) '([^']+)' imported from (\S+)/.exec(message) ?? [];
  if (name !== '') return missingModule(name, importer, missing, shown);
  const [, specifier = '', imported = ''] =
    /^The requested module '([^']+)' does not provide an export named '([^']+)'/.exec(message) ?? [];
  if (specifier === KERNEL.name || specifier.startsWith(`${KERNEL.name}/`)) {
    const own = specifier === KERNEL.name ? `${KERNEL.name} ${KERNEL.version}` : `${specifier} (${KERNEL.version})`;
    const cure = await cureOfExport(specifier, imported, path);
    return `the plugin at ${shown} imports "${imported}", which ${own} does not export; ${cure}`;
  }
  if (error instanceof SyntaxError && placeOf(error) === undefined) {
    return `the plugin at ${shown} cannot be loaded: ${message}${await placeOfSyntaxError(path)}`;
  }
  return undefined;
}

function typeScriptInstalled(shown: string): string {
  return (
    `Node.js does not run TypeScript below node_modules (${shown}); build the plugin, ` +
    'and point "exports" in its package.json to JavaScript'
  );
}

function typeScriptSyntax(shown: string, reason: string): string {
  return (
    `the plugin at ${shown} cannot be loaded: ${reason}; Node.js removes types and compiles nothing: ` +
    'avoid this syntax (tsc finds it with "erasableSyntaxOnly"), or build the plugin'
  );
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
function missingModule(name: string, by: string, missing: string | undefined, shown: string): string {
  const importer = by.startsWith('file:') ? fileURLToPath(by) : by;
  if (missing === undefined && !isAbsolute(name)) {
    const owner = packageOf(importer);
    const listed = { ...owner?.dependencies, ...owner?.peerDependencies, ...owner?.devDependencies };
    const isListed = Object.hasOwn(listed, packageName(name));
    const folder = owner?.folder ?? dirname(importer);
    const cure = isListed
      ? `run npm install in ${folder}`
      : `check the name, and install the package ${packageName(name)} in ${folder}`;
    return `the plugin at ${shown} imports the package "${name}" in ${importer}, which is not installed; ${cure}`;
  }
  const file = missing === undefined ? name : fileURLToPath(missing);
  const source = file.replace(/\.([cm]?)js$/, '.$1ts');
  const isSource = source !== file && existsSync(source);
  const cure = isSource ? `there is ${source}: import that, or build the plugin` : 'correct the import, or build the plugin';
  return `the plugin at ${shown} imports ${file} in ${importer}, which does not exist; ${cure}`;
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
