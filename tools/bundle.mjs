// Bundles the packages of the workspace: one file for each entry point, and files for what entry
// points share. Other packages stay imports, except those in BUNDLED. `npm run build` runs it after
// tsc, which checks types and writes the declarations. esbuild compiles TypeScript with the options
// of tsconfig.json, for tests too (test/tools/compile.mjs). Source maps lead to the sources.
//
// Each step says how much of a start it saves: CPU time until a server with the standard plugins
// listens, with and without the step, in 25 starts each, in turns. Bundling itself saves 52 %. A
// step that saves less than 5 % is not worth its lines.
import { appendFileSync, copyFileSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { licenses } from './licenses.mjs';
import { kernelSchemas, pluginSchema } from './option-schemas.mjs';

const root = resolve(import.meta.dirname, '..');
/** Entry points that are not exported. */
const PROGRAMS = { 'plugins/cli': { main: 'src/main.ts' } };

/**
 * Dependencies that become part of a package's bundle, with their own dependencies. They consist of
 * many small files, and every start reads all of them: saves 34 %. They stay in `dependencies`: the
 * declarations refer to them, and `npm audit` reports them.
 */
const BUNDLED = {
  kernel: ['ajv/dist/runtime', 'pino', 'reflect-metadata', 'secure-json-parse', 'tsyringe', 'yaml'],
  'plugins/transport-http': ['koa', '@koa/router'],
};

/** Bundles these dependencies and no others. */
const dependencies = (bundled) => ({
  name: 'dependencies',
  setup({ onResolve }) {
    onResolve({ filter: /^[^.]/ }, ({ path, kind, importer }) => {
      const isBundled =
        importer.includes('/node_modules/') || bundled.some((name) => path === name || path.startsWith(`${name}/`));
      return kind === 'entry-point' || isBundled ? undefined : { path, external: true };
    });
  },
});

/**
 * Loads mime-types with the first call of one of its functions, and its table of all media types
 * from a file of its own. Koa requires two versions of it, each sorts its table when it is loaded,
 * and transport-http sets every media type itself: saves 9 %, and 1 MiB of memory.
 */
const mediaTypes = {
  name: 'media-types',
  setup({ onLoad, initialOptions }) {
    const functions = ['charset', 'contentType', 'extension', 'lookup'];
    const forward = (name) => `exports.${name} = (type) => require('./index.js?loaded').${name}(type);`;
    onLoad({ filter: /\/node_modules\/mime-types\/index\.js$/ }, ({ suffix }) =>
      suffix === '' ? { contents: functions.map(forward).join('\n') } : undefined,
    );
    onLoad({ filter: /\/node_modules\/mime-db\/db\.json$/ }, ({ path }) => {
      const { version } = JSON.parse(readFileSync(join(path, '../package.json'), 'utf8'));
      const name = `media-types-${version}.json`;
      copyFileSync(path, join(initialOptions.absWorkingDir, 'dist', name));
      const contents = `module.exports = JSON.parse(require('node:fs').readFileSync(new URL('${name}', bundleUrl)));`;
      return { contents, loader: 'js' };
    });
  },
};

/**
 * Puts the compiled schemas of the kernel's own options into its bundle. With those of the plugins,
 * a start does not load ajv: saves 28 %.
 */
const compiledSchemas = {
  name: 'compiled-schemas',
  setup({ onLoad }) {
    onLoad({ filter: /\/kernel-schemas\.ts$/ }, () => ({ contents: kernelSchemas() }));
  },
};

const packages = globSync(['kernel', 'plugins/*'], { cwd: root });
await Promise.all(packages.map(bundle));
await Promise.all(packages.map(addCompiledOptions)); // imports the packages, which import each other

async function bundle(name) {
  const folder = join(root, name);
  const { metafile, outputFiles } = await build({
    absWorkingDir: folder,
    entryPoints: { ...exported(folder), ...PROGRAMS[name] },
    outdir: 'dist',
    chunkNames: '[name]-[hash]', // beside the entry points, so that `..` is the package's folder in all of them
    bundle: true,
    splitting: true,
    plugins: [dependencies(BUNDLED[name] ?? []), mediaTypes, compiledSchemas],
    // What bundled dependencies still require.
    banner: BUNDLED[name] && { js: 'const require = process.getBuiltinModule, bundleUrl = import.meta.url;' },
    format: 'esm',
    platform: 'node',
    target: 'node24',
    conditions: ['@plugboard/source'],
    sourcemap: true,
    metafile: true,
    logLevel: 'warning',
    write: false,
  });
  for (const { path, text } of outputFiles) writeFileSync(path, path.endsWith('.js') ? ascii(withoutImportsOfNode(text)) : text);
  if (BUNDLED[name]) writeFileSync(join(folder, 'dist/LICENSES.txt'), licenses(folder, Object.keys(metafile.inputs)));
  const written = new Set(Object.keys(metafile.outputs));
  for (const file of globSync('dist/**/*.{js,js.map}', { cwd: folder })) if (!written.has(file)) rmSync(join(folder, file));
}

/**
 * Replaces the imports of Node's modules. An import reads every export, used or not, and many of
 * them load further modules: `WebSocket` of node:http, for example, loads Node's own copy of
 * undici: saves 12 %.
 */
function withoutImportsOfNode(code) {
  return code.replace(/^import (?:(\w+)|\{([^}]*)\}) from "([\w:/]+)";$/gm, (statement, name, names, module) => {
    const bound = name ?? `{${names.replaceAll(' as ', ': ')}}`;
    return isBuiltin(module) ? `const ${bound} = process.getBuiltinModule("${module}");` : statement;
  });
}

/**
 * Escapes other characters than ASCII, which only comments have: V8 keeps a script with one of them
 * at two bytes for each character.
 */
function ascii(code) {
  return code.replace(/[^\0-\x7f]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Adds the compiled schema of a plugin's options to its bundle. */
async function addCompiledOptions(name) {
  const file = join(root, name, 'dist/index.js');
  if (!existsSync(file)) return; // a program
  const { default: plugin } = await import(pathToFileURL(file).href);
  if (plugin?.configSchema === undefined) return; // a library
  appendFileSync(file, `\n${pluginSchema(plugin)}`);
}

/** The sources of a package's exports, by the paths of their bundles in `dist`. */
function exported(folder) {
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const entries = Object.values(exports).filter((entry) => '@plugboard/source' in Object(entry));
  return Object.fromEntries(
    entries.map((entry) => [entry.default.replace(/^\.\/dist\/|\.js$/g, ''), entry['@plugboard/source']]),
  );
}
