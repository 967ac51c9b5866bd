import { DatabaseSync } from 'node:sqlite';
import type { Metadata } from '@plugboard/kernel';
import t from 'tap';
import { FACT_SQL } from '../src/fact-file.js';
import { ANNA, kept, OWNER, openStore, session, turn } from './opened.js';

const NO_METADATA: readonly [text: string, fault: RegExp][] = [
  ['', /is not JSON/],
  ['{"a":"cut o', /is not JSON/],
  ['null', /is no object/],
  ['[]', /is no object/],
  ['"a"', /is no object/],
  ['{"a":1}', /holds what is no text/],
  ['{"a":{"toString":"x"}}', /holds what is no text/],
  ['{"a":null}', /holds what is no text/],
  ['{"a":"1","__proto__":"x"}', /holds a __proto__/],
  ['{"__proto__":{"role":"system"}}', /holds a __proto__/],
];

t.test('S-19 metadata that cannot be read fails its session where that is asked for, and no list', async (t) => {
  const folder = t.testdir();
  const first = openStore(folder);
  for (const key of ['anna', 'ben', 'cleo']) await first.store.create(session(key), { metadata: { key }, messages: turn(1) });
  first.close();
  for (const [text, fault] of NO_METADATA) {
    const database = new DatabaseSync(first.path);
    database.prepare("UPDATE session SET metadata = ? WHERE key = 'anna'").run(text);
    database.close();
    const { store, logs, close } = openStore(folder);
    const { conversation = '' } = (await store.info(session('ben'))) ?? {};
    await t.rejects(store.info(ANNA), { code: 'bad_row', message: fault }, text);
    await t.rejects(store.info(ANNA), {
      message: /sessions\.db: the metadata of session 1 .+ Only the session that it belongs/,
    });
    const page = await store.list(OWNER.project, { limit: 2, order: 'asc' });
    t.match(page, [{ metadata: { key: 'ben' } }, { metadata: { key: 'cleo' } }], 'the page is full all the same');
    t.match(logs, [
      { level: 'error', msg: 'a session cannot be read, and was left out of a list', err: { code: 'bad_row', message: fault } },
    ]);
    t.match(await store.list(OWNER.project, { limit: 2, order: 'desc', after: conversation }), []);
    t.same(await kept(store, ANNA), { version: 1, messages: turn(1) }, 'its turns go on');
    t.same(await store.health(), { ok: true });
    close();
  }
  const { store, close } = openStore(folder);
  t.teardown(close);
  await store.setMetadata(ANNA, { key: 'mended' });
  t.match(await store.info(ANNA), { metadata: { key: 'mended' } });
  t.equal(({} as { role?: string }).role, undefined);
});

t.test('S-19 metadata that would not be read back is not written', async (t) => {
  const { store, close } = openStore(t.testdir());
  t.teardown(close);
  await store.create(ANNA, { metadata: { topic: 'rain' }, messages: [] });
  for (const [text, fault] of NO_METADATA.slice(2)) {
    const metadata = JSON.parse(text) as Metadata;
    await t.rejects(store.setMetadata(ANNA, metadata), { code: 'bad_metadata', message: fault }, text);
    await t.rejects(store.create(session('ben'), { metadata, messages: [] }), { code: 'bad_metadata' });
  }
  t.match(await store.info(ANNA), { metadata: { topic: 'rain' } });
  t.equal(await store.info(session('ben')), undefined);
});

t.test('a list is read along an index, whatever it is filtered by, and is not sorted', async (t) => {
  const { database, close } = openStore(t.testdir());
  t.teardown(close);
  const indexes = {
    asc: 'session_by_creation (project=? AND created_at>?)',
    desc: 'session_by_creation (project=? AND created_at<?)',
    ascOfUser: 'session_by_user (project=? AND user=? AND created_at>?)',
    descOfUser: 'session_by_user (project=? AND user=? AND created_at<?)',
  };
  for (const name of ['asc', 'desc', 'ascOfUser', 'descOfUser'] as const) {
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${FACT_SQL[name]}`).all();
    t.equal(plan[0]?.detail, `SEARCH session USING INDEX ${indexes[name]}`);
    t.notMatch(JSON.stringify(plan), 'TEMP B-TREE');
  }
});
