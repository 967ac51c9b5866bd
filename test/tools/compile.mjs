// Compiles the TypeScript that a test imports, in its own process and as the build does:
// `node --import=./test/tools/compile.mjs`. What was compiled is kept in .tap/compiled, so that
// each file is compiled once, and not once in each of the test's processes.
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire, registerHooks } from 'node:module';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const root = resolve(import.meta.dirname, '../..');
const folder = join(root, '.tap/compiled');
const options = {
  loader: 'ts',
  format: 'esm',
  target: 'node24',
  sourcemap: 'inline',
  sourcesContent: false,
  tsconfigRaw: readFileSync(join(root, 'tsconfig.json'), 'utf8'),
};
mkdirSync(folder, { recursive: true });

registerHooks({
  /** Imports name the compiled file: `./order.js` is `./order.ts`. */
  resolve(specifier, context, next) {
    if (/^\.{1,2}\/.*\.js$/.test(specifier) && context.parentURL?.endsWith('.ts')) {
      const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
      if (existsSync(source)) return next(source.href, context);
    }
    return next(specifier, context);
  },
  load(url, context, next) {
    if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context);
    return { format: 'module', source: compiled(fileURLToPath(url)), shortCircuit: true };
  },
});

/** Compiles a file, or reads what an earlier process made of the same text. */
function compiled(path) {
  const source = readFileSync(path, 'utf8');
  const name = relative(root, path);
  if (name.startsWith('..')) return compile(path, source); // a test wrote it
  const mark = `\n// ${hash('sha1', JSON.stringify(options) + path + source)}`; // the map names the path
  const file = join(folder, `${name.replaceAll(/[\\/]/g, '~')}.js`);
  if (existsSync(file)) {
    const code = readFileSync(file, 'utf8');
    if (code.endsWith(mark)) return code;
  }
  const code = compile(path, source) + mark;
  const draft = `${file}.${process.pid}`; // other processes read and write the same file
  writeFileSync(draft, code);
  renameSync(draft, file);
  return code;
}

function compile(path, source) {
  const { transformSync } = require('esbuild'); // not loaded where every file was compiled before
  return transformSync(source, { ...options, sourcefile: path }).code;
}
