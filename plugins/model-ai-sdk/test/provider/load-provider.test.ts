import { ConfigFault } from '@plugboard/kernel';
import { checkOptions } from '@plugboard/testing';
import t from 'tap';
import plugin from '../../src/index.js';
import { connect, PROVIDERS } from '../connection.js';

/** The mistakes that the start finds, each with its option. */
async function faultsOf(
  t: Parameters<typeof connect>[0],
  options: Readonly<Record<string, unknown>>,
): Promise<readonly string[]> {
  try {
    await connect(t, { model: 'm', apiKey: 'k', ...options });
  } catch (error) {
    if (error instanceof ConfigFault) return error.problems.map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw error;
  }
  return [];
}

t.test('a package of another specification is refused at the start with its name (AI-1)', async (t) => {
  t.match(await faultsOf(t, { provider: './fixtures/older.mjs' }), [
    'provider: ./fixtures/older.mjs has the specification v3 of the AI SDK, and this plugin needs v4; install the version of the package for AI SDK 7, usually with @latest',
  ]);
  t.match(await faultsOf(t, { provider: './fixtures/several.mjs', create: 'createOne' }), [/has the specification v2/]);
});

t.test('a module without a provider, or with several, is refused with what to do', async (t) => {
  t.match(await faultsOf(t, { provider: './fixtures/none.mjs' }), [/is not a provider package: what it creates has no spec/]);
  t.match(await faultsOf(t, { provider: './fixtures/several.mjs' }), [
    /set create to one of createAlias, createOther|createOne, createOther/,
  ]);
  t.match(await faultsOf(t, { provider: './fixtures/several.mjs', create: 'createIt' }), [/has no function "createIt"; it has/]);
  t.match(await faultsOf(t, { provider: './fixtures/several.mjs', create: 'createOther' }), [
    'settings: ./fixtures/several.mjs refuses its settings: region is missing',
  ]);
});

t.test('a package of an older specification is found by check, before it is loaded (AI-1)', async (t) => {
  const packageOf = (version: string, dependencies: object) => ({
    'package.json': JSON.stringify({ name: '@ai-sdk/anthropic', version, ...dependencies }),
  });
  const faults = (dependencies: object) => {
    const folder = t.testdir({ node_modules: { '@ai-sdk': { anthropic: packageOf('2.0.45', dependencies) } } });
    return checkOptions(plugin, { model: 'm', provider: '@ai-sdk/anthropic' }, { resolvePath: () => folder }).faults;
  };
  t.strictSame(faults({ dependencies: { '@ai-sdk/provider': '2.0.0' } }), [
    'provider: @ai-sdk/anthropic 2.0.45 has the specification v2 of the AI SDK, and this plugin needs v4; install the version of the package for AI SDK 7, usually with @latest',
  ]);
  t.match(faults({ peerDependencies: { '@ai-sdk/provider': '^3.0.1' } }), [/has the specification v3/]);
  for (const range of ['4.0.38', '^4.0.0', '^2.0.0 || ^4.0.0', '*'])
    t.strictSame(faults({ dependencies: { '@ai-sdk/provider': range } }), [], range);
});

t.test('mistakes in the options are found by check', async (t) => {
  const check = (options: object) =>
    checkOptions(plugin, { model: 'm', ...options }, { resolvePath: () => import.meta.dirname }).faults;
  t.match(check({ provider: 'node:http' }), [/must be the name of a package/]);
  t.strictSame(check({ provider: '@ai-sdk/anthropic', baseUrl: 'x' }), [
    'baseUrl: is not a URL that begins with http:// or https://',
  ]);
  t.strictSame(check({ provider: '@ai-sdk/anthropic', settings: { baseURL: 'http://x', fetch: 1 }, input: ['image'] }), [
    'settings.baseURL: belongs elsewhere; set the option baseUrl',
    'settings.fetch: belongs elsewhere; remove it: the connection sends the requests',
    'input: must include text, which every conversation contains',
  ]);
  t.strictSame(check({ provider: '@ai-sdk/anthropic' }), []);
});

t.test('a missing key and options that the package refuses are found at the start', async (t) => {
  const { ANTHROPIC_API_KEY: key } = process.env;
  delete process.env.ANTHROPIC_API_KEY;
  t.teardown(() => {
    if (key !== undefined) process.env.ANTHROPIC_API_KEY = key;
  });
  t.match(await faultsOf(t, { ...PROVIDERS.anthropic.options, apiKey: '' }), [/Anthropic API key is missing/]);
  const providerOptions = { anthropic: { thinking: { type: 'sometimes' } } };
  t.match(await faultsOf(t, { ...PROVIDERS.anthropic.options, providerOptions }), [/^providerOptions: the package refuses them/]);
});

t.test('parameters that the model does not take are known from the start (AI-14)', async (t) => {
  const { connector } = await connect(t, PROVIDERS.anthropic.options);
  for (const name of ['temperature', 'top_p', 'seed', 'frequency_penalty', 'presence_penalty', 'verbosity', 'model'])
    t.notOk(connector.supportsParam(name), name);
  for (const name of ['stop', 'max_tokens', 'tool_choice', 'parallel_tool_calls', 'response_format', 'reasoning_effort'])
    t.ok(connector.supportsParam(name), name);
  const older = await connect(t, { ...PROVIDERS.anthropic.options, model: 'claude-sonnet-4-5', providerOptions: {} });
  t.ok(older.connector.supportsParam('temperature'));
});

t.test('an unknown model is told the limit of its answers, unless one is set (AI-14)', async (t) => {
  const unknown = await connect(t, { ...PROVIDERS.anthropic.options, model: 'claude-next' });
  t.match(unknown.context.logs, [{ msg: /"claude-next" is unknown. The max output tokens have been limited to \d+/ }]);
  const limited = await connect(t, { ...PROVIDERS.anthropic.options, model: 'claude-next', maxOutputTokens: 9000 });
  t.same(limited.context.logs, []);
  const known = await connect(t, PROVIDERS.anthropic.options);
  t.same(known.context.logs, []);
});
