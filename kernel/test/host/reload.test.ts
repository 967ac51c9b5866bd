/** A reload of the configuration, by the sentences of `Server.reload` (rule 8). */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type DefinedPlugin, defineExtensionPoint, definePlugin, type JsonSchema, type Lifecycle } from '@plugboard/kernel';
import { CapturedLog, ManualClock } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { formatPath } from '../../src/host/base/problem.js';
import { compose } from '../../src/host/compose.js';
import type { FileLayout } from '../../src/host/configuration/file-layout.js';
import type { PluginContext } from '../../src/host/plugin/plugin.js';
import type { ReloadResult, Server } from '../../src/host/server.js';
import { bare, composed, plugin } from './distribution.js';

const words = defineExtensionPoint<string>('test.words', { discipline: 'by-name' });

const schema = {
  type: 'object',
  properties: { word: { type: 'string' }, port: { type: 'integer' }, map: { type: 'object', additionalProperties: true } },
} as const satisfies JsonSchema;

interface Recorder {
  /** What happened to the entries, in order. */
  readonly seen: string[];
  /** By entry: the context of its last registration. */
  readonly contexts: Map<string, PluginContext>;
  /** A plugin that contributes its `word` and records its life. */
  readonly plain: DefinedPlugin;
  /** The same, with these functions in its lifecycle. */
  with(life: (ctx: PluginContext, record: (what: string) => void) => Lifecycle, fixedOptions?: readonly string[]): DefinedPlugin;
}

function recorder(): Recorder {
  const seen: string[] = [];
  const contexts = new Map<string, PluginContext>();
  const using: Recorder['with'] = (life, fixedOptions = []) =>
    definePlugin({
      name: 'recorder',
      apiVersion: 1,
      summary: 'Records its life',
      configSchema: schema,
      fixedOptions,
      register(ctx) {
        const { word = '-' } = ctx.config;
        const record = (what: string) => void seen.push(`${ctx.name} ${word} ${what}`);
        contexts.set(ctx.name, ctx);
        ctx.contribute(words, word);
        return { start: () => record('start'), stop: () => record('stop'), ...life(ctx, record) };
      },
    }) as unknown as DefinedPlugin;
  return { seen, contexts, plain: using(() => ({})), with: using };
}

async function started(t: Test, plugins: object, clock = new ManualClock()) {
  const log = new CapturedLog();
  const server = await compose({ config: { transports: {}, plugins }, layout: bare, clock, logTo: log });
  t.teardown(() => server.stop());
  await server.start();
  const reload = (next: object) => server.reload({ transports: {}, plugins: next });
  return { server, reload, log, clock };
}

const said = ({ changes }: ReloadResult) => changes.map(({ kind, path, file }) => `${kind} ${file ?? formatPath(path)}`);
const current = (server: Server) =>
  server
    .extensions(words)
    .all()
    .map(({ name, value }) => `${name}=${value}`);
const settled = () => new Promise(setImmediate);

t.test('entries are added, changed and removed, and the others stay as they are', async (t) => {
  const { seen, plain, contexts } = recorder();
  const before = { a: { use: plain, word: 'one' }, b: { use: plain, word: 'two' }, c: { use: plain, word: 'three' } };
  const { server, reload } = await started(t, before);
  seen.length = 0;
  const a = contexts.get('a');

  const result = await reload({ a: before.a, d: { use: plain, word: 'four' }, b: { use: plain, word: 'zwei' } });
  t.strictSame(said(result), ['added plugins.d', 'changed plugins.b.word', 'removed plugins.c']);
  t.equal(result.refused, undefined);
  t.strictSame(current(server), ['a=one', 'd=four', 'b=zwei']);
  await settled();
  t.strictSame(seen, ['d four start', 'b zwei start', 'c three stop', 'b two stop'], 'new ones start before old ones stop');
  t.equal(contexts.get('a'), a, 'an unchanged entry is not registered again');
  t.strictSame(
    server.host.entries().map(({ entry, status }) => `${entry} ${status}`),
    ['plugins.a running', 'plugins.d running', 'plugins.b running'],
  );
  t.strictSame(
    server.inspection.plugins.map(({ entry }) => entry),
    ['plugins.a', 'plugins.d', 'plugins.b'],
  );

  seen.length = 0;
  await server.stop();
  t.strictSame(seen, ['b zwei stop', 'd four stop', 'a one stop']);
});

t.test('an unchanged configuration changes nothing', async (t) => {
  const { seen, plain } = recorder();
  const { server, reload } = await started(t, { a: { use: plain, map: { b: 1, a: [1] } } });
  seen.length = 0;
  const view = server.extensions(words).all();
  t.match(await reload({ a: { map: { a: [1], b: 1 }, use: plain } }), { changes: [], refused: undefined });
  t.strictSame(seen, []);
  t.equal(server.extensions(words).all(), view);
});

t.test('views of kept entries show new contributions; views of removed entries do not', async (t) => {
  const { plain } = recorder();
  const views = new Map<string, () => string[]>();
  const reader = (name: string) =>
    definePlugin({
      name,
      apiVersion: 1,
      summary: 'Reads words',
      configSchema: schema,
      register(ctx) {
        const view = ctx.extensions(words);
        views.set(`${name} ${ctx.config.word}`, () => view.all().map(({ value }) => value));
        return { start() {} };
      },
    }) as unknown as DefinedPlugin;
  const [stays, leaves] = [reader('stays'), reader('leaves')];
  const rest = { stays: { use: stays, word: 'x' } };
  const { reload } = await started(t, { a: { use: plain, word: 'one' }, ...rest, leaves: { use: leaves, word: 'x' } });
  await reload({ a: { use: plain, word: 'eins' }, ...rest, leaves: { use: leaves, word: 'y' } });
  t.strictSame(views.get('stays x')?.(), ['eins']);
  t.strictSame(views.get('leaves y')?.(), ['eins'], 'a new entry sees the new configuration');
  t.strictSame(views.get('leaves x')?.(), ['one'], 'a removed entry keeps its view');
});

t.test('work that pins the configuration keeps the entries that left from being stopped', async (t) => {
  const { seen, plain, contexts } = recorder();
  const { server, reload } = await started(t, { a: { use: plain, word: 'one' }, b: { use: plain } });
  seen.length = 0;
  const release = contexts.get('b')?.pin();
  await reload({ a: { use: plain, word: 'two' }, b: { use: plain } });
  const second = contexts.get('b')?.pin();
  await reload({ b: { use: plain } });
  await settled();
  t.strictSame(seen, ['a two start']);
  t.strictSame(server.leaving, ['plugins.a', 'plugins.a']);
  second?.();
  await settled();
  t.strictSame(seen, ['a two start', 'a two stop'], 'the first pin does not concern an entry that came later');
  release?.();
  release?.();
  await settled();
  t.strictSame(seen, ['a two start', 'a two stop', 'a one stop']);
  t.strictSame(server.leaving, []);
});

t.test('a pin ends after an hour, and when the server stops', async (t) => {
  const { seen, plain, contexts } = recorder();
  const { server, reload, clock, log } = await started(t, { a: { use: plain, word: 'one' }, b: { use: plain } });
  contexts.get('b')?.pin();
  await reload({ a: { use: plain, word: 'two' }, b: { use: plain } });
  clock.advance(3_599_999);
  await settled();
  t.notOk(seen.includes('a one stop'));
  clock.advance(1);
  await settled();
  t.ok(seen.includes('a one stop'));
  t.match(log.lines.at(-1), { level: 'warn', msg: /^plugins\.a left the configuration an hour ago/ });

  contexts.get('b')?.pin();
  await reload({ b: { use: plain } });
  seen.length = 0;
  t.strictSame(await server.stop(), []);
  t.strictSame(seen, ['b - stop', 'a two stop'], 'what left is stopped last');
});

t.test('an entry with reconfigure keeps running, and applies its change together with the others', async (t) => {
  const seen: string[] = [];
  const { plain, with: using } = recorder();
  let inForce: string | undefined = 'a1';
  const live = using((ctx) => ({
    reconfigure({ config, extensions, entries }) {
      const { word } = config as { word?: string };
      seen.push(`prepare ${word} with ${extensions(words).get('b')} of ${entries('plugins')}, while ${ctx.extensions.name}`);
      return () => {
        inForce = word;
        seen.push(`commit, ${server.extensions(words).get('b')}`);
      };
    },
  }));
  const { server, reload } = await started(t, { a: { use: live, word: 'a1' }, b: { use: plain, word: 'b1' } });
  const result = await reload({ a: { use: live, word: 'a2' }, b: { use: plain, word: 'b2' }, c: { use: plain } });
  t.equal(result.refused, undefined);
  t.equal(inForce, 'a2');
  t.match(seen, [/^prepare a2 with b2 of a,b,c/, 'commit, b2']);
  t.strictSame(current(server), ['a=a1', 'b=b2', 'c=-'], 'what it contributes stays');
});

t.test('an entry that reads a point is asked when its contributions change, and not otherwise', async (t) => {
  const { plain } = recorder();
  const asked: string[] = [];
  const reader = definePlugin({
    name: 'reader',
    apiVersion: 1,
    summary: 'Reads words',
    configSchema: schema,
    register(ctx) {
      ctx.extensions(words);
      ctx.entries('transports');
      return {
        reconfigure: ({ extensions }) => {
          asked.push(
            extensions(words)
              .all()
              .map(({ value }) => value)
              .join(),
          );
          return () => undefined;
        },
      };
    },
  }) as unknown as DefinedPlugin;
  const silent = definePlugin({
    name: 'silent',
    apiVersion: 1,
    summary: 'Does nothing',
    configSchema: schema,
    register: () => ({ start() {} }),
  });
  const { server, reload } = await started(t, { reader: { use: reader }, a: { use: plain, word: 'one' } });
  await reload({ reader: { use: reader }, a: { use: plain, word: 'one' }, other: { use: silent } });
  t.strictSame(asked, []);
  await reload({ reader: { use: reader }, a: { use: plain, word: 'two' }, other: { use: silent } });
  t.strictSame(asked, ['two']);
  await server.reload({
    transports: { new: { use: silent } },
    plugins: { reader: { use: reader }, a: { use: plain, word: 'two' } },
  });
  t.strictSame(asked, ['two', 'two'], 'it is not called if the keys that it reads stay the same');
});

t.test('whatever fails, nothing changes', async (t) => {
  const { seen, plain, with: using } = recorder();
  const clock = new ManualClock();
  const a = { use: plain, word: 'one' };
  const stays = using(() => ({
    reconfigure() {
      throw new Error('no room');
    },
  }));
  const { server, reload, log } = await started(t, { a, stays: { use: stays } }, clock);
  const next = { a: { use: plain, word: 'two' }, stays: { use: stays } };
  const fails = async (plugins: object, message: RegExp) => {
    seen.length = 0;
    const { refused, changes } = await reload(plugins);
    t.match(refused?.message, message);
    t.strictSame(changes, []);
    t.strictSame(current(server), ['a=one', 'stays=-']);
    t.match(server.host.entries(), [
      { entry: 'plugins.a', status: 'running' },
      { entry: 'plugins.stays', status: 'running' },
    ]);
  };

  await fails({ ...next, b: { use: plain, wort: 1 } }, /^configuration plugins\.b\.wort: unknown option, did you mean "word"/);
  await fails({ ...next, b: { use: './b.js' } }, /plugins\.b\.use: no plugin was found at /);
  const throws = definePlugin({
    name: 'throws',
    apiVersion: 1,
    summary: 'Throws',
    configSchema: schema,
    register() {
      throw new Error('no luck');
    },
  });
  await fails({ ...next, b: { use: throws } }, /plugins\.b: cannot be registered: no luck/);
  t.strictSame(seen, [], 'nothing was started');

  const failing = using(() => ({
    start() {
      throw new Error('port 1 is taken');
    },
  }));
  await fails({ ...next, b: { use: failing } }, /^plugins\.b did not start: port 1 is taken \(plugin recorder/);
  t.strictSame(seen, ['a two start', 'b - stop', 'a two stop'], 'what had started was stopped again');
  await fails({ a, stays: { use: stays, word: 'x' } }, /^plugins\.stays does not accept the changed configuration: no room/);

  const hanging = using(() => ({ start: () => new Promise(() => {}) }));
  const refused = fails({ a, stays: { use: stays }, b: { use: hanging } }, /^plugins\.b did not start within 10 s/);
  while (log.lines.length < 1) {
    await settled();
    clock.advance(5_000);
  }
  clock.advance(5_000);
  await refused;

  const result = await reload({ a: { use: plain, word: 'two' }, stays: { use: stays } });
  t.strictSame(said(result), ['changed plugins.a.word'], 'the next good one is applied');
});

t.test('an optional entry that does not start is disabled, and tried again by the next reload', async (t) => {
  const { plain, with: using } = recorder();
  let works = false;
  const moody = using(() => ({
    start() {
      if (!works) throw new Error('not today');
    },
  }));
  const { server, reload, log } = await started(t, { a: { use: plain } });
  const next = { a: { use: plain }, b: { use: moody, optional: true } };
  t.match(await reload(next), { refused: undefined });
  t.strictSame(current(server), ['a=-']);
  t.match(log.lines.at(-1), { level: 'warn', msg: /^disabled: plugins\.b did not start: not today/ });
  works = true;
  await reload(next);
  t.strictSame(current(server), ['a=-', 'b=-']);
});

t.test('what cannot change while the server runs is refused by name, with its position', async (t) => {
  const files = {
    'plugboard.yaml': 'transports: {}\nsessions: { use: ./a.js }\nplugins:\n  a: { use: ./a.js, port: 1, word: x }\n',
    'a.js': plugin({ properties: '{ port: { type: "integer" }, word: { type: "string" } }', more: 'fixedOptions: ["port"],' }),
    'b.js': plugin({ name: 'b' }),
  };
  const { server } = await composed(t, files);
  await server.start();
  const write = (text: string) => writeFile(join(t.testdirName, 'plugboard.yaml'), text);
  await write('transports: {}\nsessions: { use: ./b.js }\nplugins:\n  a: { use: ./a.js, port: 2, word: y }\n');
  const { refused, changes } = await server.reload();
  t.strictSame(refused?.message.split('\n'), [
    'plugboard.yaml:2:18 sessions.use: cannot change while the server runs; undo the change, or restart the server',
    'plugboard.yaml:4:27 plugins.a.port: cannot change while the server runs; undo the change, or restart the server',
  ]);
  t.strictSame(changes, []);
  await write('transports: {}\nplugins:\n  a: { use: ./a.js, port: 1, word: y }\n');
  t.match((await server.reload()).refused?.message, /^plugboard\.yaml:1:1 sessions: cannot change while/, 'removed');
  await write('transports: {}\nsessions: { use: ./a.js, word: y }\nplugins:\n  a: { use: ./a.js, port: 1 }\n');
  t.match((await server.reload()).refused?.message, /^plugboard\.yaml:2:32 sessions\.word: cannot change while/);
  await write('transports: {}\nsessions: { use: ./a.js }\nplugins:\n  a: { use: ./a.js, port: 1, word: y }\n');
  t.strictSame(said(await server.reload()), ['changed plugins.a.word']);
});

t.test('a file with mistakes changes nothing, and each mistake has its position', async (t) => {
  const { server } = await composed(t, { 'plugboard.yaml': 'transports: {}\nplugins: {}\n' });
  await server.start();
  const file = join(t.testdirName, 'plugboard.yaml');
  await writeFile(file, 'transports: {}\nplugins: { a: { use: ./nowhere.js }\n');
  t.match((await server.reload()).refused?.message, /^plugboard\.yaml:2:10: invalid YAML: the closing "}" is missing[^\n]*$/);
  await writeFile(file, `transports: {}\nplugins:\n  a: { use: ./nowhere.js }\n  b: { use: "\${GONE}" }\n`);
  t.strictSame((await server.reload()).refused?.message.split('\n'), [
    `plugboard.yaml:3:13 plugins.a.use: no plugin was found at ${join(t.testdirName, 'nowhere.js')}`,
    `plugboard.yaml:4:13 plugins.b.use: the variable GONE is not set; set it, for example in .env, or write \${GONE:-default}`,
  ]);
});

t.test('the content of files that options name is part of the configuration', async (t) => {
  const files = {
    'plugboard.yaml': 'transports: {}\nplugins: { a: { use: ./a.js, file: word.txt } }\n',
    'word.txt': 'one',
    'a.js': plugin({
      properties: '{ file: { type: "string" } }',
      more: 'check(config, { readFile }) { globalThis.word = readFile(config.file); return []; },',
      register: 'ctx.contribute(point, globalThis.word);',
    }),
  };
  const { server } = await composed(t, files);
  await server.start();
  const path = join(t.testdirName, 'word.txt');
  t.strictSame(server.inspection.files, [join(t.testdirName, 'plugboard.yaml'), join(t.testdirName, '.env'), path]);
  await writeFile(path, 'two');
  t.strictSame(said(await server.reload()), [`changed ${path}`]);
  const point = defineExtensionPoint<string>('test.point', { discipline: 'by-name' });
  t.equal(server.extensions(point).get('a'), 'two');
});

t.test('options that a section shares change without a new instance', async (t) => {
  const { seen, plain } = recorder();
  const server = await compose({
    config: { transports: {}, tools: { a: { use: plain } } },
    layout: bare,
    logTo: new CapturedLog(),
  });
  t.teardown(() => server.stop());
  await server.start();
  const result = await server.reload({ transports: {}, tools: { a: { use: plain, timeout: '5s' } } });
  t.strictSame(said(result), ['added tools.a.timeout']);
  t.match(server.extensions(words).all(), [{ name: 'a', shared: { timeout: '5s' } }]);
  t.strictSame(seen, ['a - start']);
});

t.test('a stop during a reload ends the reload, and stops the entries it had started', async (t) => {
  const { seen, plain, with: using } = recorder();
  const { server, reload } = await started(t, { a: { use: plain } });
  const asked = Promise.withResolvers<void>();
  const hanging = using(() => ({
    start() {
      asked.resolve();
      return new Promise(() => {});
    },
  }));
  const reloading = reload({ a: { use: plain }, b: { use: plain }, c: { use: hanging } });
  await asked.promise;
  t.strictSame(await server.stop(), []);
  t.match((await reloading).refused?.message, /asked to stop/);
  t.strictSame(seen, ['a - start', 'b - start', 'c - stop', 'b - stop', 'a - stop']);
  t.match(await reload({}), { changes: [] }, 'a stopped server reloads nothing');
});

t.test('a change that fails while it is applied is logged, and the others take effect', async (t) => {
  const { plain, with: using } = recorder();
  const broken = using(() => ({
    reconfigure: () => () => {
      throw new Error('too late');
    },
  }));
  const { server, reload, log } = await started(t, { a: { use: broken, word: 'x' }, b: { use: plain } });
  await reload({ a: { use: broken, word: 'y' }, b: { use: plain, word: 'two' } });
  t.strictSame(current(server), ['a=x', 'b=two']);
  t.match(log.lines.at(-1), {
    level: 'error',
    msg: /^plugins\.a failed to apply the changed configuration; restart the server: too late/,
  });
});

t.test('reloads run one after the other', async (t) => {
  const { seen, plain } = recorder();
  const { server, reload } = await started(t, { a: { use: plain, word: '0' } });
  const results = await Promise.all([1, 2, 3].map((word) => reload({ a: { use: plain, word: String(word) } })));
  t.strictSame(results.map(said), Array(3).fill(['changed plugins.a.word']));
  t.strictSame(current(server), ['a=3']);
  await settled();
  t.strictSame(
    seen.filter((what) => what.endsWith('stop')),
    ['a 0 stop', 'a 1 stop', 'a 2 stop'],
  );
});

t.test('the plugin of a section can be fixed while its options change', async (t) => {
  const { plain, with: using } = recorder();
  const fixed: FileLayout = {
    ...bare,
    sections: { ...bare.sections, sessions: { prefix: '', shape: 'single', fixed: 'plugin' } },
  };
  const config = (use: DefinedPlugin, word: string) => ({ transports: {}, sessions: { use, word } });
  const server = await compose({ config: config(plain, 'one'), layout: fixed, logTo: new CapturedLog() });
  t.teardown(() => server.stop());
  await server.start();
  const other = { ...using(() => ({})), name: 'other' };
  t.match((await server.reload(config(other, 'one'))).refused?.message, /^configuration sessions\.use: cannot change while/);
  t.strictSame(said(await server.reload(config(plain, 'two'))), ['changed sessions.word']);
});
