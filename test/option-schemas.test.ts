/** The validators that the build adds to the bundled plugins: `tools/option-schemas.mjs`. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { JsonSchema } from '@plugboard/kernel';
import fc from 'fast-check';
import t from 'tap';
import { type CompiledSchema, digestOf } from '../kernel/src/host/options/compiled-schema.js';
import { closed, OptionSchema } from '../kernel/src/host/options/schema.js';

interface BuiltPlugin {
  readonly default?: { readonly configSchema?: JsonSchema };
  readonly compiledOptions?: CompiledSchema;
}

const root = join(import.meta.dirname, '..');
const TEXTS = {
  duration: '30s',
  size: '64kb',
  url: 'https://example.com/v1',
  date: '2027-01-31',
  package: '@acme/greeter',
} as const;
/** Values that most options do not accept. */
const ODD = fc.constantFrom<unknown>('', 'x', 'ä'.repeat(9), null, true, 0, -1, 2.5, 1e9, [], {}, ['x', 'x'], { x: 'x' }, [{}]);

/** Values that a schema usually accepts. */
function valuesOf(schema: JsonSchema): fc.Arbitrary<unknown> {
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.const !== undefined) return fc.constant(schema.const);
  const branches = (schema.anyOf ?? schema.oneOf ?? []).map(valuesOf);
  const types = [schema.type ?? []].flat().map((type) => valuesOfType(type, schema));
  const known = [...branches, ...types];
  return known.length === 0 ? ODD : fc.oneof(...known);
}

function valuesOfType(type: string, schema: JsonSchema): fc.Arbitrary<unknown> {
  const { properties = {}, required = [], additionalProperties, items = {}, minimum = 0 } = schema;
  if (type === 'object') {
    const known = Object.fromEntries(Object.entries(properties).map(([key, part]) => [key, valuesOf(part)]));
    const others = typeof additionalProperties === 'object' ? valuesOf(additionalProperties) : ODD;
    const further = fc.dictionary(fc.constantFrom('x', 'default'), others, { maxKeys: additionalProperties ? 2 : 0 });
    return fc.tuple(further, fc.record(known, { requiredKeys: [...required] })).map(([a, b]) => ({ ...a, ...b }));
  }
  if (type === 'array') return fc.array(valuesOf(items), { minLength: schema.minItems ?? 0, maxLength: 3 });
  if (type === 'boolean') return fc.boolean();
  if (type === 'null') return fc.constant(null);
  if (type === 'string')
    return fc.constant(schema.format === undefined ? 'default'.padEnd(schema.minLength ?? 0, '-') : TEXTS[schema.format]);
  return fc.constant(minimum);
}

/** Options of a plugin, about half of them with one odd value. */
function optionsOf(schema: JsonSchema): fc.Arbitrary<object> {
  const keys = [...Object.keys(schema.properties ?? {}), 'unknown'];
  const change = fc.option(fc.record({ key: fc.constantFrom(...keys), value: ODD }), { freq: 2 });
  return fc.tuple(valuesOfType('object', schema), change).map(([options, odd]) => ({
    ...(options as object),
    ...(odd && { [odd.key]: odd.value }),
  }));
}

for (const file of globSync('plugins/*/dist/index.js', { cwd: root })) {
  const built: BuiltPlugin = await import(pathToFileURL(join(root, file)).href);
  const schema = built.default?.configSchema;
  if (schema === undefined) continue; // a library

  t.test(`${file}: the compiled schema decides and fills in as ajv does`, async (t) => {
    const { compiledOptions } = built;
    t.equal(compiledOptions?.digest, digestOf(closed(schema)), 'npm run build');
    const [fast, full] = [new OptionSchema(schema, compiledOptions), new OptionSchema(schema)];
    const seen = { valid: 0, invalid: 0 };
    fc.assert(
      fc.property(optionsOf(schema), (options) => {
        const [{ value, faults }, expected] = [fast.check(options), full.check(options)];
        assert.deepEqual({ value, faults }, { value: expected.value, faults: expected.faults });
        seen[faults.length === 0 ? 'valid' : 'invalid']++;
      }),
      { numRuns: 300, seed: 1 },
    );
    t.ok(seen.valid > 20 && seen.invalid > 20, JSON.stringify(seen));
  });
}

t.test('a start with bundled plugins compiles no schema', async (t) => {
  const program = `
    import { createRequire } from 'node:module';
    import { compose } from '@plugboard/kernel';
    const server = await compose({ config: {
      transports: { http: { port: 0 }, 'chat-completions': {}, models: {}, health: {}, sse: {} },
      models: { demo: {} },
      tools: { clock: {} },
      agents: { assistant: { model: 'demo', tools: ['clock'] } },
    }, logTo: { write() {} } });
    await server.start();
    await server.stop();
    const require = createRequire(import.meta.url);
    const loaded = Object.keys(require.cache);
    require('ajv');
    console.log(JSON.stringify({ loaded, withAjv: Object.keys(require.cache) }));`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: root,
    env: { PATH: process.env.PATH },
  });
  const { loaded, withAjv }: Record<string, readonly string[]> = JSON.parse(printed.toString());
  const compilers = (paths: readonly string[] = []) => paths.filter((path) => /ajv.dist.(core|compile)/.test(path));
  t.strictSame(compilers(loaded), []);
  t.not(compilers(withAjv).length, 0);
});
