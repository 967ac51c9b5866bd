/** Reloads of entries that own something which only one can own. */
import { type DefinedPlugin, defineExtensionPoint, definePlugin, type JsonSchema, type Lifecycle } from '@plugboard/kernel';
import { CapturedLog, ManualClock } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { compose } from '../../src/host/compose.js';
import type { PluginContext } from '../../src/host/plugin/plugin.js';
import { bare } from './distribution.js';

const words = defineExtensionPoint<string>('test.words', { discipline: 'in-order' });
const schema = { type: 'object', properties: { word: { type: 'string' } } } as const satisfies JsonSchema;
const settled = () => new Promise(setImmediate);

/** A port that one entry at a time can listen on. */
class Port {
  owner: string | undefined;
  readonly seen: string[] = [];
  readonly contexts = new Map<string, PluginContext>();

  /** A plugin that listens on it. `life` replaces parts of its lifecycle. */
  plugin(life: (word: string) => Lifecycle = () => ({}), exclusive = true, name = 'listener'): DefinedPlugin {
    return definePlugin({
      name,
      apiVersion: 1,
      summary: 'Listens on a port',
      configSchema: schema,
      exclusive,
      register: (ctx) => {
        const { word = '-' } = ctx.config;
        this.contexts.set(word, ctx);
        ctx.contribute(words, word);
        return {
          start: () => {
            if (this.owner !== undefined) throw new Error(`the port belongs to ${this.owner}`);
            this.owner = word;
            this.seen.push(`${word} start`);
          },
          stop: () => {
            if (this.owner === word) this.owner = undefined;
            this.seen.push(`${word} stop`);
          },
          ...life(word),
        };
      },
    }) as unknown as DefinedPlugin;
  }
}

const failing = (word: string): Lifecycle =>
  word !== 'bad'
    ? {}
    : {
        start() {
          throw new Error('no luck');
        },
      };

async function started(t: Test, plugins: object) {
  const log = new CapturedLog();
  const clock = new ManualClock();
  const server = await compose({ config: { transports: {}, plugins }, layout: bare, clock, logTo: log });
  t.teardown(() => server.stop());
  await server.start();
  const reload = (next: object) => server.reload({ transports: {}, plugins: next });
  const statuses = () => server.host.entries().map(({ entry, status }) => `${entry} ${status}`);
  const current = () => [...server.extensions(words)].map(({ value }) => value);
  return { server, reload, log, clock, statuses, current };
}

t.test('an exclusive entry is stopped before its successor starts, whatever pins it', async (t) => {
  const port = new Port();
  const listener = port.plugin();
  const { reload, statuses, current, server } = await started(t, { a: { use: listener, word: 'one' } });
  const release = port.contexts.get('one')?.pin();
  t.equal((await reload({ a: { use: listener, word: 'two' } })).refused, undefined);
  t.strictSame(port.seen, ['one start', 'one stop', 'two start']);
  t.strictSame([statuses(), current(), server.leaving], [['plugins.a running'], ['two'], []]);
  release?.();
  await settled();
  await server.stop();
  t.strictSame(port.seen.slice(3), ['two stop'], 'each is stopped once');
});

t.test('an exclusive entry can get another name, and the plugin behind a name can change', async (t) => {
  const port = new Port();
  const listener = port.plugin();
  const { reload, current } = await started(t, { a: { use: listener, word: 'one' } });
  t.equal((await reload({ b: { use: listener, word: 'two' } })).refused, undefined);
  t.strictSame(port.seen, ['one start', 'one stop', 'two start']);
  const other = port.plugin(undefined, false, 'other');
  t.equal((await reload({ b: { use: other, word: 'three' } })).refused, undefined);
  t.strictSame(port.seen.slice(3), ['two stop', 'three start']);
  t.strictSame(current(), ['three']);
});

t.test('two exclusive entries of one plugin do not concern each other', async (t) => {
  const [first, second] = [new Port(), new Port()];
  const [one, two] = [first.plugin(), second.plugin()];
  const { reload } = await started(t, { a: { use: one, word: 'a' }, b: { use: two, word: 'b' } });
  await reload({ a: { use: one, word: 'a' }, b: { use: two, word: 'c' } });
  t.strictSame(first.seen, ['a start']);
  t.strictSame(second.seen, ['b start', 'b stop', 'c start']);
});

t.test('an exclusive entry that leaves is stopped at once', async (t) => {
  const port = new Port();
  const listener = port.plugin();
  const { reload } = await started(t, { a: { use: listener, word: 'one' } });
  port.contexts.get('one')?.pin();
  await reload({});
  await settled();
  t.strictSame(port.seen, ['one start', 'one stop']);
});

t.test('if the successor does not start, the entry runs again as before', async (t) => {
  const port = new Port();
  const listener = port.plugin(failing);
  const { reload, statuses, current, log, server } = await started(t, { a: { use: listener, word: 'one' } });
  const { refused, changes } = await reload({ a: { use: listener, word: 'bad' } });
  t.match(refused?.message, /^plugins\.a did not start: no luck/);
  t.strictSame(changes, []);
  t.strictSame(port.seen, ['one start', 'one stop', 'bad stop', 'one start']);
  t.strictSame([statuses(), current()], [['plugins.a running'], ['one']]);
  t.match(log.lines, [{ level: 'warn', msg: 'the change is refused: plugins.a was stopped for it, and runs again as before' }]);

  await settled();
  t.match(await reload({ a: { use: listener, word: 'one' } }), { changes: [] }, 'it is the configuration in force');
  t.equal((await reload({ a: { use: listener, word: 'two' } })).refused, undefined);
  await server.stop();
  t.strictSame(port.seen.slice(4), ['one stop', 'two start', 'two stop']);
});

t.test('an optional successor that does not start is disabled, and the log says what was stopped for it', async (t) => {
  const port = new Port();
  const listener = port.plugin(failing);
  const { reload, statuses, log } = await started(t, { a: { use: listener, word: 'one' } });
  t.equal((await reload({ a: { use: listener, word: 'bad', optional: true } })).refused, undefined);
  t.strictSame([port.seen, statuses()], [['one start', 'one stop', 'bad stop'], ['plugins.a disabled']]);
  t.match(log.lines, [
    { level: 'warn', msg: /^disabled: plugins\.a did not start: no luck/ },
    {
      level: 'warn',
      msg: /^plugins\.a was stopped for its successor, which is optional and disabled: .* correct the file and reload$/,
    },
  ]);
  await reload({ a: { use: listener, word: 'two', optional: true } });
  t.strictSame([port.seen.slice(3), statuses()], [['two start'], ['plugins.a running']]);
});

t.test('what can fail without it is tried before an exclusive entry is stopped', async (t) => {
  const port = new Port();
  const listener = port.plugin();
  const shared = new Port().plugin(failing, false, 'shared');
  const { reload } = await started(t, { a: { use: listener, word: 'one' } });
  const { refused } = await reload({ a: { use: listener, word: 'two' }, b: { use: shared, word: 'bad' } });
  t.match(refused?.message, /^plugins\.b did not start: no luck/);
  t.strictSame(port.seen, ['one start'], 'it was never stopped');
});

t.test('a reader of an exclusive entry starts after the successor', async (t) => {
  const port = new Port();
  const listener = port.plugin();
  const reader = definePlugin({
    name: 'reader',
    apiVersion: 1,
    summary: 'Reads words',
    configSchema: schema,
    register(ctx) {
      const view = ctx.extensions(words);
      return { start: () => void port.seen.push(`reader of ${view.all().map(({ value }) => value)}`) };
    },
  }) as unknown as DefinedPlugin;
  const { reload } = await started(t, { a: { use: listener, word: 'one' } });
  await reload({ a: { use: listener, word: 'two' }, r: { use: reader } });
  t.strictSame(port.seen, ['one start', 'one stop', 'two start', 'reader of two']);
});

t.test('an entry that cannot come back is reported, and tried again by the next reload', async (t) => {
  const port = new Port();
  let isTaken = false;
  const listener = port.plugin((word) => ({
    ...failing(word),
    ...(word === 'one' && {
      start() {
        if (isTaken) throw new Error('the port is taken');
        port.seen.push('one start');
      },
    }),
  }));
  const { reload, statuses, log, server } = await started(t, { a: { use: listener, word: 'one' } });
  isTaken = true;
  t.match((await reload({ a: { use: listener, word: 'bad' } })).refused?.message, /no luck/);
  t.strictSame(statuses(), ['plugins.a failed']);
  t.match(log.lines.at(-1), {
    level: 'error',
    msg: 'plugins.a was stopped for a change that is refused, and did not start again',
    err: { message: /the port is taken/ },
  });
  isTaken = false;
  t.equal((await reload({ a: { use: listener, word: 'one' } })).refused, undefined);
  t.strictSame(statuses(), ['plugins.a running']);
  t.strictSame(await server.stop(), []);
});

t.test('an exclusive entry that can be reconfigured is not stopped', async (t) => {
  const port = new Port();
  const listener = port.plugin(() => ({ reconfigure: () => () => void port.seen.push('changed') }));
  const { reload } = await started(t, { a: { use: listener, word: 'one' } });
  await reload({ a: { use: listener, word: 'two' } });
  t.strictSame(port.seen, ['one start', 'changed']);
});

t.test('a stop while the successor starts stops each entry once', async (t) => {
  const port = new Port();
  const asked = Promise.withResolvers<void>();
  const hanging: Lifecycle = {
    start() {
      asked.resolve();
      return new Promise(() => {});
    },
  };
  const listener = port.plugin((word) => (word === 'two' ? hanging : {}));
  const { reload, server, statuses } = await started(t, { a: { use: listener, word: 'one' } });
  const reloading = reload({ a: { use: listener, word: 'two' } });
  await asked.promise;
  t.strictSame(await server.stop(), []);
  t.match((await reloading).refused?.message, /asked to stop/);
  t.strictSame(port.seen, ['one start', 'one stop', 'two stop']);
  t.strictSame(statuses(), ['plugins.a stopped']);
});

t.test('a stop that is cut short says so within its second of grace', async (t) => {
  const port = new Port();
  const asked = Promise.withResolvers<number | undefined>();
  const listener = port.plugin(() => ({
    stopLimit: 5_000,
    async stop(signal, within) {
      asked.resolve(within);
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      await settled(); // closes what is open
      throw new Error('1 answer was cut');
    },
  }));
  const { server, clock } = await started(t, { a: { use: listener, word: 'one' } });
  const stopping = server.stop();
  t.equal(await asked.promise, 5_000);
  clock.advance(5_000);
  t.match(await stopping, [{ message: /^plugins\.a did not stop cleanly: 1 answer was cut/ }]);
});
