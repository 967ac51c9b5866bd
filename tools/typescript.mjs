// Compiles one TypeScript file: for the tests (test/tools/compile.mjs) every file, for the bundles
// (tools/bundle.mjs) the classes with decorators. Those are compiled by TypeScript, because esbuild
// would make a WeakMap of each of their private members, which is slow.
import { transformSync } from 'esbuild';
import ts from 'typescript';

/** Whether esbuild must not compile this source. */
export const hasDecorators = (source) => source.includes('@injectable()');

/** Returns JavaScript with its source map. */
export function compile(path, source) {
  return hasDecorators(source)
    ? ts.transpileModule(source, { fileName: path, compilerOptions }).outputText
    : transformSync(source, { ...options, sourcefile: path }).code;
}

const options = {
  loader: 'ts',
  format: 'esm',
  target: 'node24',
  sourcemap: 'inline',
  sourcesContent: false,
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
};
const compilerOptions = {
  target: ts.ScriptTarget.ES2024,
  module: ts.ModuleKind.ESNext,
  verbatimModuleSyntax: true,
  experimentalDecorators: true,
  inlineSourceMap: true,
  inlineSources: true,
};
