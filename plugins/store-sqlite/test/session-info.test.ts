import { DatabaseSync } from 'node:sqlite';
import type { Metadata } from '@plugboard/kernel/contracts';
import t from 'tap';
import { SESSION_INFO_SQL } from '../src/tables/session-info-table.js';
import { ANNA, loaded, OWNER, openStore, session, turn } from './open-store.js';

const BAD_METADATA: readonly [text: string, problem: RegExp][] = [
  ['', /is not JSON/],
  ['{"a":"cut o', /is not JSON/],
  ['null', /is not an object/],
  ['[]', /is not an object/],
  ['"a"', /is not an object/],
  ['{"a":1}', /has a value that is not a string/],
  ['{"a":{"toString":"x"}}', /has a value that is not a string/],
  ['{"a":null}', /has a value that is not a string/],
  ['{"a":"1","__proto__":"x"}', /has a key __proto__/],
  ['{"__proto__":{"role":"system"}}', /has a key __proto__/],
];

t.test('S-19 metadata that cannot be read fails its session only, and no list', async (t) => {
  const folder = t.testdir();
  const first = openStore(folder);
  for (const key of ['anna', 'ben', 'cleo']) await first.store.create(session(key), { metadata: { key }, messages: turn(1) });
  first.close();
  for (const [text, problem] of BAD_METADATA) {
    const database = new DatabaseSync(first.path);
    database.prepare("UPDATE session SET metadata = ? WHERE key = 'anna'").run(text);
    database.close();
    const { store, logs, close } = openStore(folder);
    const after = await store.info(session('ben'));
    await t.rejects(store.info(ANNA), { code: 'bad_row', message: problem }, text);
    await t.rejects(store.info(ANNA), {
      message: /sessions\.db: the metadata of session 1 .+ Only the session it belongs/,
    });
    const page = await store.list(OWNER.project, { limit: 2, order: 'asc' });
    t.match(page, [{ metadata: { key: 'ben' } }, { metadata: { key: 'cleo' } }], 'the page is still full');
    t.match(logs, [
      { level: 'error', msg: 'a session cannot be read and is left out of a list', err: { code: 'bad_row', message: problem } },
    ]);
    t.match(await store.list(OWNER.project, { limit: 2, order: 'desc', after }), []);
    t.same(await loaded(store, ANNA), { version: 1, messages: turn(1) }, 'its turns continue');
    t.same(await store.health(), { ok: true });
    close();
  }
  const { store, close } = openStore(folder);
  t.teardown(close);
  await store.setMetadata(ANNA, { key: 'repaired' });
  t.match(await store.info(ANNA), { metadata: { key: 'repaired' } });
  t.equal(({} as { role?: string }).role, undefined);
});

t.test('S-19 refuses to write metadata that could not be read back', async (t) => {
  const { store, close } = openStore(t.testdir());
  t.teardown(close);
  await store.create(ANNA, { metadata: { topic: 'rain' }, messages: [] });
  for (const [text, problem] of BAD_METADATA.slice(2)) {
    const metadata = JSON.parse(text) as Metadata;
    await t.rejects(store.setMetadata(ANNA, metadata), { code: 'bad_metadata', message: problem }, text);
    await t.rejects(store.create(session('ben'), { metadata, messages: [] }), { code: 'bad_metadata' });
  }
  t.match(await store.info(ANNA), { metadata: { topic: 'rain' } });
  t.equal(await store.info(session('ben')), undefined);
});

t.test('a list is read along an index, whatever it is filtered by, and is not sorted', async (t) => {
  const { database, close } = openStore(t.testdir());
  t.teardown(close);
  for (const [name, index] of [
    ['asc', 'session_by_activity (project=? AND updated_at'],
    ['desc', 'session_by_activity (project=? AND updated_at'],
    ['ascOfUser', 'session_by_user (project=? AND user=? AND updated_at'],
    ['descOfUser', 'session_by_user (project=? AND user=? AND updated_at'],
  ] as const) {
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${SESSION_INFO_SQL[name]}`).all();
    const sign = name.startsWith('asc') ? '>' : '<';
    t.strictSame(
      plan.map(({ detail }) => detail).filter((detail) => String(detail).startsWith('SEARCH')),
      [`SEARCH session USING INDEX ${index}=? AND id${sign}?)`, `SEARCH session USING INDEX ${index}${sign}?)`],
      'no session of the same millisecond is passed over',
    );
    t.notMatch(JSON.stringify(plan), 'TEMP B-TREE');
  }
});
