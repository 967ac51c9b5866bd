import t from 'tap';
import { defineExtensionPoint } from '../../../src/host/plugin/extension-point.js';
import { Registry } from '../../../src/host/registration/registry.js';

const named = defineExtensionPoint<string>('test.named', { discipline: 'by-name' });
const single = defineExtensionPoint<string>('test.single', { discipline: 'one' });
const listed = defineExtensionPoint<string>('test.listed', { discipline: 'in-order' });
const of = (entry: string, name: string, value = `${name} of ${entry}`) => ({ entry, name, value, shared: {} });

t.test('a view is empty until the registrations are sealed and live afterwards', async (t) => {
  const registry = new Registry();
  const view = registry.view(named);
  registry.contribute(named, of('tools.a', 'a'));
  registry.contribute(named, of('tools.b', 'b'));
  t.same([view.all(), view.get('a'), [...view]], [[], undefined, []]);
  registry.seal();
  const before = view.all();
  t.equal(before, view.all(), 'the same array, as long as nothing changes');
  t.throws(() => (before as unknown[]).pop(), TypeError);
  t.same(
    [...view].map(({ name }) => name),
    ['a', 'b'],
  );
  t.equal(view.get('b'), 'b of tools.b');
  registry.disable('tools.a');
  t.same(
    view.all().map(({ name }) => name),
    ['b'],
  );
  t.equal(view.get('a'), undefined);
  t.equal(before.length, 2, 'who holds an array keeps what it began with');
});

t.test('R-053 a duplicate name and a second value of a single-value point name both owners', async (t) => {
  const registry = new Registry();
  registry.contribute(named, of('tools.a', 'clock'));
  t.throws(() => registry.contribute(named, of('tools.b', 'clock')), {
    message: 'tools.b and tools.a both provide "clock" at test.named; rename one of them',
  });
  registry.contribute(single, of('sessions', 'x'));
  t.throws(() => registry.contribute(single, of('plugins.y', 'y')), {
    message: 'plugins.y and sessions both provide test.single, which allows only one; remove one of them',
  });
  registry.contribute(listed, of('plugins.a', 'same'));
  registry.contribute(listed, of('plugins.b', 'same'));
  registry.seal();
  t.equal(registry.view(listed).all().length, 2, 'in a list, names are free');
});

t.test('one() returns the only value or names the missing point', async (t) => {
  const registry = new Registry();
  registry.contribute(single, of('sessions', 'x'));
  registry.seal();
  t.equal(registry.view(single).one(), 'x of sessions');
  t.throws(() => registry.view(named).one(), {
    message: 'nothing provides test.named; add the plugin that does to the configuration',
  });
});

t.test('a point is the same for every copy of the package that defines it', async (t) => {
  const copy = defineExtensionPoint<string>('test.named', { discipline: 'by-name' });
  const registry = new Registry();
  registry.contribute(named, of('tools.a', 'a'));
  registry.seal();
  t.equal(registry.view(copy).get('a'), 'a of tools.a');
  t.equal(`${copy}`, 'test.named');
});
