/**
 * The interface for plugin authors, of the kernel and the test kit: small at its root, marked and
 * documented everywhere, and never changed by accident.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readApi } from './support/api/read-api.js';
import { apiReference, UPDATE } from './support/api/reference.js';

const root = join(import.meta.dirname, '..');
const modules = ['kernel', 'plugins/testing'].flatMap((folder) => readApi(join(root, folder)));
const all = modules.flatMap(({ specifier, exports }) => exports.map((one) => ({ ...one, label: `${specifier}: ${one.name}` })));

/** Names that a plugin author reads through before the first plugin. */
const ROOT_LIMIT = 60;
/** Names at all import paths together: each is one that must stay. */
const LIMIT = 250;

t.test('the root of the kernel shows at most 60 names', async (t) => {
  const [main] = modules;
  t.equal(main?.specifier, '@plugboard/kernel');
  t.ok((main?.exports.length ?? 0) <= ROOT_LIMIT, `${main?.exports.length} names; move some to a subpath`);
});

t.test('all import paths together show at most 250 names', async (t) => {
  t.ok(all.length <= LIMIT, `${all.length} names; export only what a plugin, a template or a guide names`);
});

t.test('no name is exported at two import paths', async (t) => {
  const twice = all.filter(({ name }, at) => all.findIndex((other) => other.name === name) !== at);
  t.strictSame(
    twice.map(({ label }) => label),
    [],
  );
});

t.test('every export is marked @public or @experimental', async (t) => {
  t.strictSame(
    all.filter(({ stability }) => stability === undefined).map(({ label }) => label),
    [],
    'add one of the tags to the doc comment',
  );
});

t.test('every export and every import path has a doc comment', async (t) => {
  t.strictSame(
    all.filter(({ summary }) => !/\w.*\w/.test(summary)).map(({ label }) => label),
    [],
    'say what it is for, the shape and units of what goes in and out, and what it throws',
  );
  t.strictSame(
    modules.filter(({ summary }) => summary === '').map(({ specifier }) => specifier),
    [],
  );
});

t.test('every type that an export refers to has a doc comment, exported or not', async (t) => {
  t.strictSame(
    modules.flatMap(({ unnamed }) => unnamed.filter(({ summary }) => !/\w.*\w/.test(summary)).map(({ name }) => name)),
    [],
  );
});

t.test('the API reference is current', async (t) => {
  const expected = apiReference(modules);
  const path = join(root, 'docs/reference/api.md');
  if (process.env.UPDATE_API === '1') writeFileSync(path, expected);
  t.equal(readFileSync(path, 'utf8'), expected, `if you meant to change the interface, run "${UPDATE}" and commit the page`);
});
