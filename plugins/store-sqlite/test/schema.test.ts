import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { conversationId, type SessionId } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { ANNA, loaded, OWNER, openStore, turn } from './open-store.js';

/** The last use of the sessions in the old files, and a later time. */
const ANNA_USED = 1_767_100_000_000;
const OTHER_USED = 1_767_200_000_000;
const LATER = 1_767_300_000_000;
const OTHER: SessionId = { project: 'other', agent: 'a"b', key: "ẞ ';--" };
const KEY = { project: 'acme', route: '/v1/chat/completions', key: 'once' };

/** Creates a file of an earlier schema. */
function oldFile(folder: string, schema: number): void {
  const database = new DatabaseSync(join(folder, 'sessions.db'));
  for (let n = 1; n <= schema; n++) database.exec(readFileSync(new URL(`fixtures/schema-${n}.sql`, import.meta.url), 'utf8'));
  database.close();
}

for (const schema of [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
  t.test(`migrates a file of schema ${schema} with all its content`, async (t) => {
    const folder = t.testdir();
    oldFile(folder, schema);
    const { store, database, close } = openStore(folder, { clock: new ManualClock(LATER) });
    t.teardown(close);
    t.same(database.prepare('PRAGMA user_version').get(), { user_version: 15 });
    t.same(await loaded(store, ANNA), { version: 2, messages: [...turn(1), ...turn(2)] });
    t.same(await store.turns(ANNA, { limit: 1, order: 'desc' }), [{ turn: 2, messages: turn(2) }]);
    t.same(await loaded(store, OTHER), { version: 1, messages: [{ role: 'user', content: '漢字' }] });
    t.strictSame(await store.info(ANNA), {
      id: ANNA,
      conversation: conversationId(ANNA),
      createdAt: ANNA_USED,
      updatedAt: ANNA_USED,
      turns: 2,
      bytes: [...turn(1), ...turn(2)].reduce((sum, one) => sum + JSON.stringify(one).length, '{}'.length),
      title: 'question 1',
      metadata: {},
    });
    t.match(await store.find('other', conversationId(OTHER)), { id: OTHER, createdAt: OTHER_USED, turns: 1, title: '漢字' });
    t.match(await store.list('acme', { limit: 10, order: 'desc' }), [{ id: ANNA }]);
    t.same(await store.recover(), [{ id: ANNA, turnId: 'turn_3', input: [{ role: 'user', content: 'question 3' }] }]);
    t.same(await store.pendingToolCalls.load(OWNER, 'call_1'), [{ role: 'user', content: 'parked' }]);
    const answer = { key: KEY, fingerprint: 'f1', result: { text: 'answer' } };
    t.same(await store.idempotency.claim(KEY, 'f1'), schema === 1 ? undefined : answer);

    await store.commit(ANNA, { expected: 2, messages: turn(3), user: 'anna', idempotency: answer });
    await store.create({ ...OWNER, key: 'new' }, { metadata: { topic: 'rain' }, messages: [] });
    t.match(await store.info(ANNA), { turns: 3, user: 'anna', createdAt: ANNA_USED, updatedAt: LATER });
    await store.documents.put(OTHER, 'resp_1', 'text');
    t.match(await store.documents.get('other', 'resp_1'), { id: OTHER, text: 'text' });
    await store.state.change([{ entry: 'plugins.pager', key: 'offset', text: '1' }]);
    t.equal(await store.state.get('plugins.pager', 'offset'), '1');
    const kept = schema < 8 ? [] : [{ key: 'let in', text: '"anna"' }];
    t.same(await store.state.list('plugins.pager', { prefix: '' }), [...kept, { key: 'offset', text: '1' }]);
    t.same(database.prepare('SELECT * FROM state_count').all(), [{ entry: 'plugins.pager', keys: kept.length + 1 }]);
    t.equal(await store.delete(OTHER), true);
    t.equal(await store.documents.get('other', 'resp_1'), undefined);
    t.match(await store.list('acme', { limit: 10, order: 'desc' }), [{ id: { key: 'new' } }, { id: ANNA }]);
    t.same(database.prepare('PRAGMA integrity_check').all(), [{ integrity_check: 'ok' }]);
    t.same(database.prepare('PRAGMA foreign_key_check').all(), []);
  });
}
