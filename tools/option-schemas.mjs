// Compiles the option schemas of the kernel and of the bundled plugins, so that a start compiles
// none and does not load ajv. kernel/src/host/options/compiled-schema.ts describes the result. The
// schema of any other plugin is compiled when the plugin is loaded.
import { rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { _ } from 'ajv';
import standaloneCode from 'ajv/dist/standalone/index.js';
import { build } from 'esbuild';

const SOURCES = resolve(import.meta.dirname, '../kernel/src');
const { commonSchema, layout, LOG_SCHEMA, closed, createAjv, digestOf } = await importSources(`
  export { commonSchema } from './host/configuration/entries.ts';
  export { LOG_SCHEMA } from './host/configuration/log-settings.ts';
  export { digestOf } from './host/options/compiled-schema.ts';
  export { createAjv } from './host/options/compile.ts';
  export { closed } from './host/options/schema.ts';
  export { layout } from './layout.ts';
`);

/** The module that replaces kernel-schemas.ts in the bundle. */
export function kernelSchemas() {
  const schemas = [LOG_SCHEMA, ...Object.values(layout.sections).map(commonSchema)];
  return `export const KERNEL_SCHEMAS = [${[...new Set(schemas.map(compiledSchema))].join(',\n')}];`;
}

/** What is added to the bundle of a plugin. */
export function pluginSchema({ configSchema }) {
  return `export const compiledOptions = ${compiledSchema(configSchema)};\n`;
}

/** A CompiledSchema, as the source of an object. ajv writes a CommonJS module. */
function compiledSchema(options) {
  const schema = closed(options);
  const ajv = createAjv({ messages: false, code: { source: true, formats: _`formats` } });
  const code = standaloneCode(ajv, ajv.compile(schema)).replace(JSON.stringify(schema), 'schema');
  const create = `create(schema, formats, require) {\nconst module = {};\n${code}\nreturn module.exports;\n}`;
  return `{ digest: '${digestOf(schema)}', ${create} }`;
}

/** Imports what the kernel does not export. */
async function importSources(contents) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: SOURCES },
    bundle: true,
    write: false,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    target: 'node24',
  });
  const file = join(SOURCES, '../dist/option-schemas.tmp.mjs'); // in the package, which it reads the manifest of
  writeFileSync(file, outputFiles[0].contents);
  try {
    return await import(pathToFileURL(file).href);
  } finally {
    rmSync(file);
  }
}
