// Compiles the TypeScript that a test imports, in its own process:
// `node --import=./test/tools/compile.mjs`.
import { existsSync, readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { transformSync } from 'esbuild';

const options = {
  loader: 'ts',
  format: 'esm',
  target: 'node24',
  sourcemap: 'inline',
  tsconfigRaw: { compilerOptions: { experimentalDecorators: true, verbatimModuleSyntax: true } },
};

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
    const path = fileURLToPath(url);
    const { code } = transformSync(readFileSync(path, 'utf8'), { ...options, sourcefile: path });
    return { format: 'module', source: code, shortCircuit: true };
  },
});
