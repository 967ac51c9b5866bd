import { defineExtensionPoint, definePlugin, type Extensions, type PluginContext } from '@plugboard/kernel';
import { CONTEXT, createGraph, inject } from '@plugboard/kernel/injection';
import t from 'tap';
import { checkOptions, ManualClock, testContext } from '../../src/index.js';

const Greetings = defineExtensionPoint<string>('test.greeting', { discipline: 'by-name' });
const Others = defineExtensionPoint<number>('test.other', { discipline: 'in-order' });

class Greeter {
  constructor(@inject(CONTEXT) readonly ctx: PluginContext) {}
}

/** What the plugin below kept of its last registration. */
let seen: { numbers: Extensions<number>; later: Extensions<number>; atOnce: readonly unknown[]; path: string };

const plugin = definePlugin({
  name: 'test-greeter',
  apiVersion: 1,
  summary: 'Greets',
  configSchema: {
    type: 'object',
    properties: {
      word: { type: 'string', description: 'What it says.', default: 'hello' },
      list: { type: 'array', items: { type: 'string', minLength: 1 } },
    },
    additionalProperties: false,
  },
  check: (config, { entries, disabled, literal, resolvePath }) =>
    config.word === 'bad'
      ? [
          { path: ['word'], message: `is bad in ${resolvePath('x').slice(-2)}` },
          { path: [], message: [...entries('models'), ...disabled('models'), literal('auth')].join() },
        ]
      : [],
  register(ctx) {
    const numbers = ctx.extensions(Others);
    seen = { numbers, later: ctx.late(Others), atOnce: numbers.all(), path: ctx.resolvePath('a/b') };
    ctx.contribute(Greetings, ctx.config.word);
    if (ctx.config.word === 'twice') ctx.contribute(Greetings, 'again', 'more');
    ctx.log.info('registered');
    return ctx.config.word === 'lively' ? { stop: () => undefined } : undefined;
  },
});

t.test(
  'a test context is what a server would give: options with defaults, name, entry, log, clock, ids, container',
  async (t) => {
    const clock = new ManualClock();
    const ctx = testContext(plugin, { clock, entry: 'plugins.greeter', folder: '/etc/x' });
    t.same(ctx.config, { word: 'hello' });
    t.same([ctx.entry, ctx.name, seen.path], ['plugins.greeter', 'greeter', '/etc/x/a/b']);
    const { clock: given, host, ids, log } = createGraph(ctx, Greeter).ctx;
    t.same([given, ids], [clock, ctx.ids]);
    t.match(host, { phase: 'running' });
    log.warn({ a: 1 }, 'careful');
    t.match(ctx.logs, [
      { level: 'info', msg: 'registered', plugin: 'test-greeter', entry: 'plugins.greeter', time: '2026-01-01T00:00:00.000Z' },
      { level: 'warn', msg: 'careful', a: 1 },
    ]);
    t.equal(testContext(plugin, { entry: 'sessions' }).name, 'sessions');
  },
);

t.test('it records contributions, and returns them by point and name', async (t) => {
  t.equal(testContext(plugin).contributed(Greetings), 'hello');
  const ctx = testContext(plugin, { config: { word: 'twice' } });
  t.equal(ctx.contributed(Greetings, 'more'), 'again');
  t.same(ctx.contributions(), [
    { point: 'test.greeting', name: 'test' },
    { point: 'test.greeting', name: 'more' },
  ]);
  t.throws(() => ctx.contributed(Greetings), {
    message: 'test-greeter did not contribute one value at test.greeting, but "test" at test.greeting, "more" at test.greeting',
  });
  t.throws(() => ctx.contributed(Greetings, 'x'), { message: /one value "x" at/ });
  const silent = definePlugin({ ...plugin, register: () => ({ stop: () => undefined }) });
  t.throws(() => testContext(silent).contributed(Greetings), { message: /but nothing at all$/ });
});

t.test('contributions of other entries can be provided, and are visible after the registration as in a server', async (t) => {
  const ctx = testContext(plugin);
  t.same(seen.atOnce, []);
  ctx.provide(Others, 7);
  ctx.provide(Others, 8, 'eight');
  t.same(
    [...seen.numbers].map(({ name, value }) => [name, value]),
    [
      ['other', 7],
      ['eight', 8],
    ],
  );
  t.equal(seen.later.get('eight'), 8);
  t.same(
    ctx.contributions().map(({ point }) => point),
    ['test.greeting'],
    'they are not the plugin’s',
  );
  t.throws(() => ctx.contribute(Greetings, 'late'), 'nothing can be contributed once the registration is over');
});

t.test('other keys of the file can be given, also for the registration', async (t) => {
  const entries = (section: string) => (section === 'projects' ? ['acme'] : []);
  const ctx = testContext(plugin, { check: { entries } });
  t.same([ctx.entries('projects'), ctx.entries('models')], [['acme'], []]);
  t.same(testContext(plugin).entries('projects'), []);
});

t.test('the lifecycle is empty if the plugin has none', async (t) => {
  t.same(testContext(plugin).lifecycle, {});
  t.type(testContext(plugin, { config: { word: 'lively' } }).lifecycle.stop, 'function');
});

t.test('options that the plugin does not take are refused with everything that is wrong', async (t) => {
  t.throws(() => testContext(plugin, { config: { wrod: 1, list: ['a', ''] } }), {
    message: [
      "test-greeter does not take these options; pass others as `config` of the test's options:",
      'wrod: unknown option, did you mean "word"?',
      'list[1]: must not be empty',
    ].join('\n'),
  });
  t.throws(() => testContext(plugin, { config: { word: 'bad' }, folder: '/f' }), { message: /^word: is bad in \/x$/m });
});

t.test('options can be checked alone, also with other keys of the file', async (t) => {
  t.same(checkOptions(plugin, undefined), { config: { word: 'hello' }, faults: [] });
  t.match(checkOptions(plugin, { word: 'bad' }).faults, ['word: is bad in /x', '']);
  const around = { entries: () => ['fast'], disabled: () => ['slow'], literal: () => 'open' };
  t.equal(checkOptions(plugin, { word: 'bad' }, around).faults[1], 'fast,slow,open');
});
