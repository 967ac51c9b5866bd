import { join } from 'node:path';
import { inspect } from 'node:util';
import { defineExtensionPoint, type PluginContext } from '@plugboard/kernel';
import { ManualClock, SequentialIds } from '@plugboard/testing';
import t from 'tap';
import { layout } from '../../src/layout.js';
import { bare, composed, plugin, problemsOf } from './distribution.js';

const point = defineExtensionPoint<unknown>('test.point', { discipline: 'by-name' });

/** What a plugin of a test left behind for it to look at. */
const left = <T>(name: string): T => (globalThis as Record<string, unknown>)[name] as T;

/** Entries of `plugins`, each served by its own module with this `register`. */
function entries(registers: Readonly<Record<string, string>>): Record<string, string> {
  const names = Object.keys(registers);
  return {
    'plugboard.yaml': `transports: {}\nplugins:\n${names.map((name) => `  ${name}: { use: ./${name}.js }\n`).join('')}`,
    ...Object.fromEntries(
      Object.entries(registers).map(([name, register]) => [`${name}.js`, plugin({ name: `plugin-${name}`, register })]),
    ),
  };
}

t.test('register receives the entry’s context by argument and by token', async (t) => {
  const clock = new ManualClock();
  const ids = new SequentialIds();
  const files = entries({
    a: 'globalThis.ctx = ctx; globalThis.byToken = ctx.container.resolve(CONTEXT);',
  });
  const { server, log } = await composed(t, files, { clock, ids });
  const ctx = left<PluginContext>('ctx');
  t.match(ctx, { entry: 'plugins.a', name: 'a', config: {} });
  t.ok(Object.isFrozen(ctx.config));
  t.equal(ctx.clock, clock);
  t.equal(ctx.ids, ids);
  t.equal(ctx.host, server.host);
  t.equal(left('byToken'), ctx);
  ctx.log.info('hello');
  t.match(log.lines, [{ msg: 'hello', plugin: 'plugin-a', entry: 'plugins.a', time: new Date(clock.now()).toISOString() }]);
});

t.test('two kernels in one process share no state', async (t) => {
  const register = '(globalThis.contexts ??= []).push(ctx); ctx.container.register("own", { useValue: ctx.entry });';
  await composed(t, entries({ a: register, b: register }));
  await composed(t, entries({ a: register }));
  const [a, b, again] = left<PluginContext[]>('contexts');
  t.equal(a?.container.resolve('own'), 'plugins.a');
  t.equal(b?.container.resolve('own'), 'plugins.b');
  t.not(a?.container, again?.container);
  const { container } = await import('tsyringe');
  t.notOk(container.isRegistered('own'));
});

t.test('a read is available after registration, a late read once the server runs', async (t) => {
  const { server } = await composed(
    t,
    entries({
      reader: `
        const seen = globalThis.seen = {};
        const view = ctx.extensions(point);
        const late = ctx.late(point);
        const lookLate = () => { try { return late.all().length } catch (error) { return error.message } };
        seen.atRegister = [view.all().length, lookLate()];
        globalThis.ctx = ctx;
        return { start() { seen.atStart = [view.all().length, lookLate()] }, stop() { seen.atStop = [view.all().length, lookLate()] } };
      `,
      giver: 'ctx.contribute(point, "one"); ctx.contribute(point, "two", "second");',
    }),
  );
  await server.start();
  t.same(
    server
      .extensions(point)
      .all()
      .map(({ name, value, entry }) => [name, value, entry]),
    [
      ['giver', 'one', 'plugins.giver'],
      ['second', 'two', 'plugins.giver'],
    ],
  );
  const ctx = left<PluginContext>('ctx');
  t.throws(() => ctx.contribute(point, 3), {
    message: 'plugins.reader may contribute to test.point only while its register() runs',
  });
  t.throws(() => ctx.extensions(point), {
    message: 'plugins.reader may read test.point only while its register() runs',
  });
  t.throws(() => ctx.late(point), { message: 'plugins.reader may read test.point only while its register() runs' });
  await server.stop();
  const refused = 'plugins.reader cannot use a point that it reads with late() before the server runs';
  t.same(left('seen'), { atRegister: [0, refused], atStart: [2, refused], atStop: [2, 2] });
});

t.test('readers start after contributors and stop before them', async (t) => {
  const life = (name: string) =>
    `return { start: () => void events.push('+${name}'), stop: () => void events.push('-${name}') };`;
  Object.assign(globalThis, { events: [] });
  const { server } = await composed(
    t,
    entries({
      listener: `ctx.extensions(list); ${life('listener')}`,
      route: `ctx.contribute(list, {}); ctx.extensions(point); ${life('route')}`,
      service: `ctx.contribute(point, {}); ${life('service')}`,
      apart: life('apart'),
    }),
  );
  await server.start();
  await server.stop();
  t.same(left('events'), ['+service', '+apart', '+route', '+listener', '-listener', '-route', '-apart', '-service']);
});

t.test('R-053 two values of a single-value point, and a cycle, are errors that name both sides', async (t) => {
  t.match(
    await problemsOf(
      t,
      entries({
        a: 'ctx.contribute(point, 1, "x")',
        b: 'ctx.contribute(point, 2, "x")',
        c: 'ctx.contribute(only, 1)',
        d: 'ctx.contribute(only, 1)',
      }),
    ),
    [
      'plugboard.yaml:4:3 plugins.b: cannot be registered: plugins.b and plugins.a both provide "x" at test.point; rename one of them, at ',
      'plugboard.yaml:6:3 plugins.d: cannot be registered: plugins.d and plugins.c both provide test.only, which allows only one; remove one of them, at ',
    ],
  );
  t.same(
    await problemsOf(
      t,
      entries({ e: 'ctx.contribute(point, 1); ctx.extensions(list)', f: 'ctx.contribute(list, 1); ctx.extensions(point)' }),
    ),
    [
      'plugboard.yaml:3:3 plugins.e: circular dependency: plugins.e reads test.list of plugins.f; plugins.f reads test.point of plugins.e',
    ],
  );
});

t.test('R-053 a required point that nothing provides is an error that names it', async (t) => {
  t.same(await problemsOf(t, entries({ g: 'ctx.extensions(only)', h: 'ctx.late(only)' })), [
    `plugboard.yaml:3:3 plugins.g: needs test.only, which no entry of this file provides; add one that does (plugin plugin-g 0.1.0, ${join(t.testdirName, 'g.js')})`,
    `plugboard.yaml:4:3 plugins.h: needs test.only, which no entry of this file provides; add one that does (plugin plugin-h 0.1.0, ${join(t.testdirName, 'h.js')})`,
  ]);
});

t.test('register must be synchronous and return a lifecycle or nothing', async (t) => {
  const wrong = 'register() must be synchronous and return nothing or an object with start and stop';
  const problems = await problemsOf(t, entries({ i: 'return Promise.resolve();', j: 'return 5;', k: 'return null;' }));
  t.same(
    problems.map((problem) => problem.includes(wrong)),
    [true, true, true],
  );
});

t.test('plugins are listed in the order of the file, with descriptions of their contributions', async (t) => {
  const { server } = await composed(
    t,
    entries({
      http: 'ctx.extensions(list);',
      chat: 'ctx.contribute(list, { facts: [{ kind: "link", label: "chat", text: "/chat", more: 1 }] }); ctx.contribute(list, {}, "none"); ctx.contribute(point, 1)',
    }),
  );
  t.same(server.inspection.plugins, [
    { name: 'plugin-http', version: '0.1.0', path: join(t.testdirName, 'http.js'), entry: 'plugins.http', provides: [] },
    {
      name: 'plugin-chat',
      version: '0.1.0',
      path: join(t.testdirName, 'chat.js'),
      entry: 'plugins.chat',
      provides: [
        { point: 'test.list', name: 'chat' },
        { point: 'test.list', name: 'none' },
        { point: 'test.point', name: 'chat' },
      ],
    },
  ]);
  t.same(server.inspection.descriptions(), [
    {
      kind: 'link',
      label: 'chat',
      text: '/chat',
      plugin: 'plugin-chat',
      entry: 'plugins.chat',
      point: 'test.list',
      name: 'chat',
    },
  ]);
  t.equal(server.inspection.file, join(t.testdirName, 'plugboard.yaml'));
});

t.test('the agent runtime needs no entry, and its options are keys of the top level', async (t) => {
  const files = {
    'plugboard.yaml': 'transports: {}\nsessions: { use: memory }\nagents: { a: { model: m } }\nmodels: { m: { use: demo } }\n',
  };
  const { server } = await composed(t, files, { layout });
  t.match(
    server.inspection.plugins.find(({ entry }) => entry === 'runtime'),
    { name: '@plugboard/agent-runtime', provides: [{ point: 'agent.runtime', name: 'runtime' }] },
  );
  t.same(server.inspection.keys('agents'), ['a']);
});

t.test('a section that a plugin needs is served by its default plugin, only then, and needs no entry', async (t) => {
  const yaml = (more: string) => ({
    'plugboard.yaml': `transports: { http: {}${more} }\nsessions: { use: memory }\nmodels: { m: { use: demo } }\n`,
  });
  const services = async (files: Record<string, string>) => {
    const { server } = await composed(t, files, { layout });
    return server.inspection.plugins.filter(({ provides }) => provides.some(({ point }) => point === 'open-responses.service'));
  };
  t.match(await services(yaml(', responses: {}, websocket: {}')), [{ entry: 'responses', name: '@plugboard/open-responses' }]);
  t.same(await services(yaml('')), []);
  const named = yaml(', websocket: {}')['plugboard.yaml'];
  t.match(await services({ 'plugboard.yaml': `${named}responses: { use: open-responses }\n` }), [{ entry: 'responses' }]);
  t.match(await problemsOf(t, { 'plugboard.yaml': `${named}responses: { use: not-there }\n` }, { layout }), [
    'plugboard.yaml:4:19 responses.use: the plugin @plugboard/not-there is not installed',
  ]);
});

t.test('a default plugin is found among the dependencies of the plugin that needs it', async (t) => {
  const files = {
    'plugboard.yaml': 'transports: { t: { use: t } }\n',
    node_modules: {
      t: {
        'package.json': '{ "name": "t", "version": "1.0.0", "type": "module", "main": "index.js" }',
        'index.js': plugin({ name: 't', more: "needs: ['extra'],", register: 'ctx.contribute(list, 1);' }),
        node_modules: {
          extra: {
            'package.json': '{ "name": "extra", "version": "1.0.0", "type": "module", "main": "index.js" }',
            'index.js': plugin({ name: 'extra', register: 'ctx.contribute(list, 2);' }),
          },
        },
      },
    },
  };
  const extra = { prefix: '', shape: 'single', fallback: { use: 'extra' }, onDemand: true } as const;
  const { server } = await composed(t, files, { layout: { ...bare, sections: { ...bare.sections, extra } } });
  t.same(
    server.inspection.plugins.map(({ entry, name }) => [entry, name]),
    [
      ['transports.t', 't'],
      ['extra', 'extra'],
    ],
  );
});

t.test('another runtime defines other top-level keys and has no options beside `use`', async (t) => {
  const runtime = plugin({
    properties: '{ crew: { type: "array", items: { type: "string" } } }',
    register: `
      globalThis.crew = ctx.config.crew;
      ctx.contribute(AgentRuntimes, new Proxy({}, { get: () => () => undefined }));`,
  }).replace('import { ', 'import { AgentRuntimes, ');
  const files = (use: string, rest: string) => ({
    'plugboard.yaml': `transports: {}\nsessions: { use: memory }\nruntime: ${use}\n${rest}`,
    'r.js': runtime,
  });
  await composed(t, files('{ use: ./r.js }', 'crew: [ada]\n'), { layout });
  t.same(left('crew'), ['ada']);
  t.same(await problemsOf(t, files('{ use: ./r.js, crew: [ada] }', 'team: {}\n'), { layout }), [
    "plugboard.yaml:3:25 runtime.crew: unknown option; the options of runtime are keys of the file's top level",
    'plugboard.yaml:4:1 team: unknown section; known: "transports", "auth", "sessions", "models", "tools", "plugins", "runtime", "responses", "crew", "log"',
  ]);
  t.match(await problemsOf(t, files('{ use: not-there }', 'agents: {}\n'), { layout }), [
    'plugboard.yaml:3:17 runtime.use: the plugin @plugboard/not-there is not installed',
  ]);
});

t.test('sections can be omitted and replaced', async (t) => {
  const register = (name: string) => plugin({ name, register: 'ctx.contribute(point, ctx.name)' });
  const { server } = await composed(
    t,
    {
      'plugboard.yaml':
        'transports: { x: { use: not-there } }\nauth: {}\nsessions: { use: not-there }\ntools: { a: { use: ./a.js } }\n',
      'a.js': register('a'),
      'store.js': register('store'),
    },
    { omit: ['transports', 'auth'], replace: { sessions: { use: './store.js' } } },
  );
  t.same(
    server.inspection.plugins.map(({ entry, name }) => `${entry} ${name}`),
    ['sessions store', 'tools.a a'],
  );
});

t.test('the file sets the log level', async (t) => {
  const { server } = await composed(t, { 'plugboard.yaml': `transports: {}\nlog: { level: "\${LEVEL:-warn}" }\n` });
  t.notOk(server.log.isLevelEnabled('info'));
  t.ok(server.log.isLevelEnabled('warn'));
});

t.test('a section can replace an absent one', async (t) => {
  const fallback = {
    ...bare,
    sections: { ...bare.sections, sessions: { prefix: 'store', shape: 'single', fallback: { use: './store.js' } } },
  } as const;
  const { server } = await composed(
    t,
    { 'plugboard.yaml': 'transports: {}\nsessions:\n', 'store.js': plugin({ name: 'store' }) },
    { layout: fallback },
  );
  t.match(server.inspection.plugins, [{ entry: 'sessions', name: 'store' }]);
});

t.test('a mistake that only the start finds is reported with its place, and everything is stopped', async (t) => {
  const { server } = await composed(t, {
    'plugboard.yaml': 'transports: {}\nplugins:\n  a:\n    use: ./a.js\n',
    'a.js': plugin({
      register: `
        return {
          start() { throw new ConfigFault([{ path: ['use'], message: 'is not what it seemed' }, { path: [], message: 'all wrong' }]); },
          stop() { globalThis.stopped = true; },
        };`,
    }),
  });
  await t.rejects(server.start(), {
    name: 'ConfigError',
    message: [
      'plugboard.yaml:4:5 plugins.a: all wrong (plugin test-plugin 0.1.0)',
      'plugboard.yaml:4:10 plugins.a.use: is not what it seemed (plugin test-plugin 0.1.0)',
    ].join('\n'),
  });
  t.equal(left('stopped'), true);
});

t.test('a partial server has the valid entries, reports the mistakes and cannot be started', async (t) => {
  const files = entries({ well: '' });
  files['plugboard.yaml'] += '  broken: { use: ./broken.js }\n';
  const { server } = await composed(t, files, { partial: true });
  t.strictSame(
    server.inspection.plugins.map(({ entry }) => entry),
    ['plugins.well'],
  );
  t.match(server.inspection.mistakes?.message, /plugins\.broken/);
  await t.rejects(server.start(), /plugins\.broken/);
});

t.test('S-28 what a server returns or throws of a failing plugin contains no secret', async (t) => {
  const shapes = {
    message: 'new Error("refused " + secret)',
    cause: 'new Error("refused", { cause: new TypeError("refused " + secret) })',
    several: 'new AggregateError([new Error("refused " + secret)])',
    property: 'Object.assign(new Error("refused"), { code: "REFUSED", request: { headers: { secret } } })',
    text: '"refused " + secret',
    object: '({ refused: [secret] })',
    mistake: 'new ConfigFault([{ path: [], message: "refused " + secret }])',
  };
  const SECRET = 'open-sesame';
  for (const [shape, thrown] of Object.entries(shapes)) {
    for (const phase of ['check', 'register', 'start', 'reload', 'stop']) {
      await t.test(`${shape} in ${phase}`, async (t) => {
        const fail = `((secret) => { throw ${thrown}; })`;
        const code = plugin({
          properties: '{ key: { type: "string", secret: true } }',
          more: phase === 'check' ? `check(config) { ${fail}(config.key); },` : '',
          register: `${phase === 'register' ? `${fail}(ctx.config.key);` : ''} return { ${phase}() { ${fail}(ctx.config.key); } };`,
        });
        const config = { transports: {}, plugins: { a: { use: './a.js', key: SECRET } } };
        const seen: unknown[] = [];
        try {
          const { server } = await composed(t, { 'a.js': code }, { file: undefined, config });
          await server.start().catch((error: unknown) => seen.push(error));
          const { failures, refused } = await server.reload(config);
          seen.push(...failures, refused, ...(await server.stop()));
        } catch (error) {
          seen.push(error);
        }
        const text = seen.map((one) => inspect(one, { depth: null, showHidden: true })).join('\n');
        t.match(text, /refused|threw \[object/, 'it is reported');
        t.notMatch(text, SECRET);
      });
    }
  }
});

t.test('the report of an entry has its plugin, whether it is optional, and its health while it runs', async (t) => {
  const files = {
    'plugboard.yaml':
      'transports: {}\nplugins: { a: { use: ./a.js, optional: true }, b: { use: ./b.js }, c: { use: ./c.js }, d: { use: ./d.js }, e: { use: ./e.js } }\n',
    'a.js': plugin({ name: 'plugin-a', register: "return { health: () => ({ state: 'degraded', reason: 'half of it' }) };" }),
    'b.js': plugin({ name: 'plugin-b', register: "return { health() { throw new Error('it cannot say'); } };" }),
    'c.js': plugin({ name: 'plugin-c', register: "return { health: () => ({ state: 'fine' }) };" }),
    'd.js': plugin({ name: 'plugin-d', register: 'return { health: async () => ({ ok: true }) };' }),
    'e.js': plugin({ name: 'plugin-e' }),
  };
  const { server } = await composed(t, files);
  const healths = () => server.host.entries().map(({ health }) => health);
  t.strictSame(healths(), Array(5).fill(undefined), 'not before the start');
  await server.start();
  t.match(server.host.entries(), [
    { entry: 'plugins.a', optional: true, plugin: 'plugin-a', version: String, status: 'running' },
    { entry: 'plugins.b', optional: false, plugin: 'plugin-b' },
  ]);
  t.strictSame(healths(), [
    { state: 'degraded', reason: 'half of it' },
    { state: 'failed', reason: 'health() failed: it cannot say' },
    { state: 'failed', reason: 'health() failed: its health is "fine"' },
    undefined,
    undefined,
  ]);
  await server.stop();
  t.strictSame(healths(), Array(5).fill(undefined));
});
