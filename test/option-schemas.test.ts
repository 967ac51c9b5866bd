/** The validators that the build adds to the bundled plugins: `tools/option-schemas.mjs`. */
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
const TEXTS = ['', 'x', '30s', '64kb', '2027-01-31', 'https://example.com/v1', 'default', 'ä'.repeat(3)];
const OTHERS = [null, true, false, 0, 1, 2.5, -1, 1e9, [], {}, ['x'], ['x', 'x'], { x: 'x' }];

/** Options that are valid more often than not. */
function optionsOf(schema: JsonSchema): fc.Arbitrary<unknown> {
  const branches = schema.anyOf ?? schema.oneOf;
  const likely = [
    ...(schema.enum ?? []).map((value) => fc.constant(value)),
    ...(schema.const === undefined ? [] : [fc.constant(schema.const)]),
    ...(schema.default === undefined ? [] : [fc.constant(schema.default)]),
    ...(branches ?? []).map(optionsOf),
    ...[schema.type ?? []].flat().map((type) => ofType(type, schema)),
  ];
  const unlikely = fc.constantFrom(...TEXTS, ...OTHERS);
  return fc.oneof({ weight: 1, arbitrary: unlikely }, ...likely.map((arbitrary) => ({ weight: 12, arbitrary })));
}

function ofType(
  type: string,
  { properties = {}, required = [], additionalProperties, items = {} }: JsonSchema,
): fc.Arbitrary<unknown> {
  if (type === 'object') {
    const known = Object.fromEntries(Object.entries(properties).map(([key, part]) => [key, optionsOf(part)]));
    const further = fc.dictionary(
      fc.constantFrom('x', 'default'),
      typeof additionalProperties === 'object' ? optionsOf(additionalProperties) : fc.constant(1),
      { maxKeys: additionalProperties ? 2 : 0 },
    );
    return fc.tuple(further, fc.record(known, { requiredKeys: [...required] })).map(([a, b]) => ({ ...a, ...b }));
  }
  if (type === 'array') return fc.array(optionsOf(items), { maxLength: 3 });
  if (type === 'boolean') return fc.boolean();
  if (type === 'null') return fc.constant(null);
  return type === 'string' ? fc.constantFrom(...TEXTS) : fc.integer({ min: 0, max: 100 });
}

for (const file of globSync('plugins/*/dist/index.js', { cwd: root })) {
  const built: BuiltPlugin = await import(pathToFileURL(join(root, file)).href);
  const schema = built.default?.configSchema;
  if (schema === undefined) continue; // a library

  t.test(`${file}: the compiled schema decides and fills in as ajv does`, async (t) => {
    const { compiledOptions } = built;
    t.equal(compiledOptions?.digest, digestOf(closed(schema)), 'npm run build');
    const [fast, full] = [new OptionSchema(schema, compiledOptions), new OptionSchema(schema)];
    let valid = 0;
    fc.assert(
      fc.property(ofType('object', schema), (options) => {
        const { value, faults } = fast.check(options);
        if (faults.length === 0) valid++;
        t.strictSame({ value, faults }, pick(full.check(options)));
      }),
      { numRuns: 200 },
    );
    t.ok(valid > 0, 'some options are valid');
  });
}

function pick({ value, faults }: ReturnType<OptionSchema['check']>) {
  return { value, faults };
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
    const loaded = Object.keys(createRequire(import.meta.url).cache);
    await server.stop();
    console.log(JSON.stringify(loaded));`;
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: root,
    env: { PATH: process.env.PATH },
  });
  const loaded: string[] = JSON.parse(printed.toString());
  t.ok(loaded.length > 0);
  t.strictSame(
    loaded.filter((path) => /ajv.dist.(core|compile)/.test(path)),
    [],
  );
});
