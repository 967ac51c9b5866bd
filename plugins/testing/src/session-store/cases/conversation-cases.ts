import assert from 'node:assert/strict';
import { conversationId, SessionExists, type SessionId, sessionTitle, VersionConflict } from '@plugboard/kernel/contracts';
import { assertInfo, assertLoaded, commitTurns, HOUR, OWNER, SESSION, turn } from '../support/assertions.js';
import { EVERY_FORM, INJECTIONS, UNUSUAL_KEYS, UNUSUAL_TEXTS } from '../support/fixtures.js';
import type { Suite } from '../support/suite.js';

/** Sessions without their messages: creation, metadata, user, times. */
export function conversationCases({ add, clock, canReopen }: Suite): void {
  add('ignores changes to a session that does not exist', async (store) => {
    await store.setMetadata(SESSION, { topic: 'rain' });
    await store.putSummary(SESSION, 0, { messages: 0, text: 'nothing was said' });
    await store.fork(SESSION, 'copy', 1);
    for (const id of [SESSION, { ...SESSION, key: 'copy' }]) {
      assert.equal(await store.info(id), undefined);
      assert.equal(await store.find(id.project, conversationId(id)), undefined);
      assert.deepEqual(await store.turns(id, { limit: 10, order: 'asc' }), []);
      assert.equal(await store.delete(id), false);
      await assertLoaded(store, id, { version: 0, messages: [] });
    }
    assert.deepEqual(await store.list(SESSION.project, { limit: 10, order: 'asc' }), []);
  });

  add('creates a session before its first turn', async (store) => {
    await store.create(SESSION, { metadata: { topic: 'rain' }, messages: [] });
    await assertLoaded(store, SESSION, { version: 0, messages: [] });
    await assertInfo(store, SESSION, { turns: 0, metadata: { topic: 'rain' } });
    await store.commit(SESSION, { expected: 0, messages: turn(1) });
    await assertLoaded(store, SESSION, { version: 1, messages: turn(1) });
    await assertInfo(store, SESSION, { turns: 1, metadata: { topic: 'rain' } });
  });

  add('creates a session with messages, which become turn 1', async (store) => {
    await store.create(SESSION, { metadata: {}, messages: EVERY_FORM });
    await assertLoaded(store, SESSION, { version: 1, messages: EVERY_FORM });
    assert.deepEqual(await store.turns(SESSION, { limit: 10, order: 'asc' }), [{ turn: 1, messages: EVERY_FORM }]);
    await assert.rejects(store.commit(SESSION, { expected: 0, messages: turn(2) }), VersionConflict);
    await store.commit(SESSION, { expected: 1, messages: turn(2) });
    await assertInfo(store, SESSION, { turns: 2, metadata: {} });
  });

  add('creates no session over an existing one', async (store) => {
    await commitTurns(store, SESSION, 1);
    const again = { metadata: { topic: 'snow' }, messages: turn(7) };
    await assert.rejects(store.create(SESSION, again), SessionExists);
    await assertLoaded(store, SESSION, { version: 1, messages: turn(1) });
    await assertInfo(store, SESSION, { turns: 1, metadata: {} });

    const other = { ...SESSION, key: 'other' };
    const attempts = await Promise.allSettled([1, 2, 3].map((n) => store.create(other, { metadata: {}, messages: turn(n) })));
    const winner = attempts.findIndex(({ status }) => status === 'fulfilled');
    for (const [i, attempt] of attempts.entries())
      if (i !== winner) assert.ok(attempt.status === 'rejected' && attempt.reason instanceof SessionExists, `attempt ${i}`);
    await assertLoaded(store, other, { version: 1, messages: turn(winner + 1) });
  });

  add('finds a session by its id, and by its opaque id within its project only', async (store) => {
    const ids: SessionId[] = [
      ...UNUSUAL_KEYS.map((key) => ({ ...SESSION, key })),
      { ...SESSION, agent: 'billing' },
      { ...SESSION, project: 'other' },
    ];
    for (const [n, id] of ids.entries()) await store.create(id, { metadata: { n: `${n}` }, messages: [] });
    for (const [n, id] of ids.entries()) {
      const info = await assertInfo(store, id, { turns: 0, metadata: { n: `${n}` } });
      assert.deepEqual(await store.find(id.project, conversationId(id)), info);
      assert.equal(await store.find(`${id.project}s`, conversationId(id)), undefined);
    }
    for (const conversation of [conversationId({ ...SESSION, key: 'unknown' }), ...UNUSUAL_KEYS])
      assert.equal(await store.find(SESSION.project, conversation), undefined, conversation);
  });

  add('keeps the user of the latest turn that names one', async (store) => {
    for (const [n, user] of [undefined, 'anna', undefined, 'ben', ...UNUSUAL_KEYS].entries()) {
      await store.commit(SESSION, { expected: n, messages: turn(n), user });
      const expected = n === 0 ? undefined : (user ?? 'anna');
      await assertInfo(store, SESSION, { turns: n + 1, user: expected, metadata: {} });
    }
  });

  add('gives a session the title of its first message', async (store) => {
    const title = async (id: SessionId) => (await store.info(id))?.title;
    await store.create(SESSION, { metadata: { title: 'mine' }, messages: [] });
    assert.equal(await title(SESSION), undefined, 'nothing was said');
    await store.commit(SESSION, { expected: 0, messages: [{ role: 'assistant', content: 'Hello?' }] });
    assert.equal(await title(SESSION), undefined, 'no user has said anything');
    for (const n of [1, 2]) await store.commit(SESSION, { expected: n, messages: turn(n) });
    assert.equal(await title(SESSION), 'question 1', 'and the second message changes nothing');
    await store.fork(SESSION, 'copy', 0);
    assert.equal(await title({ ...SESSION, key: 'copy' }), 'question 1', 'a fork');
    await assertInfo(store, SESSION, { turns: 3, metadata: { title: 'mine' } });

    for (const [n, text] of [...UNUSUAL_TEXTS, ...INJECTIONS].entries()) {
      const ids = [`made ${n}`, `first ${n}`].map((key) => ({ ...SESSION, key }));
      const messages = [{ role: 'user', content: text }] as const;
      await store.create(ids[0] ?? SESSION, { metadata: {}, messages });
      await store.commit(ids[1] ?? SESSION, { expected: 0, messages });
      for (const id of ids) assert.equal(await title(id), sessionTitle(messages), JSON.stringify(text));
    }
    const listed = await store.list(SESSION.project, { limit: 100, order: 'asc' });
    for (const info of listed) assert.deepEqual(info, await store.info(info.id), 'as in the list');
  });

  add('replaces metadata', async (store) => {
    await store.create(SESSION, { metadata: { a: '1', b: '2' }, messages: [] });
    await store.setMetadata(SESSION, { b: '3' });
    await assertInfo(store, SESSION, { turns: 0, metadata: { b: '3' } });
    const names = UNUSUAL_KEYS.filter((key) => key !== '__proto__');
    for (const texts of [names, UNUSUAL_TEXTS]) {
      const metadata = Object.fromEntries(texts.map((text, n) => [names[n] ?? '', text]));
      await store.setMetadata(SESSION, metadata);
      await assertInfo(store, SESSION, { turns: 0, metadata });
    }
    await store.setMetadata(SESSION, {});
    await assertInfo(store, SESSION, { turns: 0, metadata: {} });
  });

  add('S-19 refuses metadata with a key __proto__, or keeps it as data', async (store) => {
    await store.create(SESSION, { metadata: {}, messages: [] });
    const poison = JSON.parse('{"a":"1","__proto__":"x"}');
    const kept = await store.setMetadata(SESSION, poison).then(
      () => poison,
      () => ({}),
    );
    await assertInfo(store, SESSION, { turns: 0, metadata: kept });
    const other = { ...SESSION, key: 'other' };
    const isMade = await store.create(other, { metadata: poison, messages: [] }).then(
      () => true,
      () => false,
    );
    if (isMade) await assertInfo(store, other, { turns: 0, metadata: poison });
    else assert.equal(await store.info(other), undefined);
  });

  add('shares no metadata with its callers', async (store) => {
    const metadata = { topic: 'rain' };
    await store.create(SESSION, { metadata, messages: [] });
    metadata.topic = 'snow';
    await assertInfo(store, SESSION, { turns: 0, metadata: { topic: 'rain' } });
    await store.setMetadata(SESSION, metadata);
    metadata.topic = 'hail';
    for (const info of [await store.info(SESSION), ...(await store.list(SESSION.project, { limit: 1, order: 'asc' }))])
      Reflect.set(info?.metadata ?? {}, 'topic', 'mutated');
    await assertInfo(store, SESSION, { turns: 0, metadata: { topic: 'snow' } });
  });

  add('reports at least the size of the messages', async (store) => {
    await store.create(SESSION, { metadata: {}, messages: turn(1) });
    await store.commit(SESSION, { expected: 1, messages: turn(2) });
    await store.fork(SESSION, 'copy', 2);
    for (const id of [SESSION, { ...SESSION, key: 'copy' }]) {
      const [info, { bytes }] = [await store.info(id), await store.load(id)];
      assert.ok(bytes > 0 && info !== undefined && info.bytes >= bytes, `${info?.bytes} of at least ${bytes} bytes`);
    }
  });

  if (clock) {
    add('keeps the times of creation and of the last turn', async (store) => {
      const times = async () => {
        const { createdAt, updatedAt } = (await store.info(SESSION)) ?? {};
        return [createdAt, updatedAt];
      };
      clock.advance(HOUR);
      const made = Math.floor(clock.now());
      await store.create(SESSION, { metadata: {}, messages: turn(1) });
      assert.deepEqual(await times(), [made, made]);
      clock.advance(HOUR);
      await store.commit(SESSION, { expected: 1, messages: turn(2) });
      assert.deepEqual(await times(), [made, made + HOUR], 'a turn');
      clock.advance(HOUR);
      await store.setMetadata(SESSION, { topic: 'rain' });
      await store.load(SESSION);
      await store.begin(SESSION, { turnId: 'turn_3', input: turn(3) });
      await store.abandon(SESSION, 'turn_3');
      await store.putSummary(SESSION, 2, { messages: 2, text: 'rain' });
      await store.fork(SESSION, 'copy', 1);
      await assert.rejects(store.create(SESSION, { metadata: {}, messages: [] }), SessionExists);
      assert.deepEqual(await times(), [made, made + HOUR], 'nothing else changes them');

      const other = { ...SESSION, key: 'ben' };
      await store.commit(other, { expected: 0, messages: turn(1) });
      assert.equal((await store.info(other))?.createdAt, made + 2 * HOUR, 'created by its first turn');
    });
  }

  if (canReopen) {
    add('keeps sessions across a restart', async (store, reopen) => {
      const [made, forked] = [
        { ...OWNER, key: 'made' },
        { ...OWNER, key: 'forked' },
      ];
      await store.create(made, { metadata: { topic: 'rain' }, messages: EVERY_FORM });
      await store.commit(SESSION, { expected: 0, messages: turn(1), user: 'anna' });
      await store.setMetadata(SESSION, { topic: 'snow' });
      await store.putSummary(SESSION, 1, { messages: 1, text: 'snow' });
      await store.fork(SESSION, 'forked', 1);
      const before = await store.list(OWNER.project, { limit: 10, order: 'asc' });
      const second = await reopen();
      assert.deepEqual(await second.list(OWNER.project, { limit: 10, order: 'asc' }), before);
      await assertInfo(second, made, { turns: 1, metadata: { topic: 'rain' } });
      await assertInfo(second, SESSION, { turns: 1, user: 'anna', metadata: { topic: 'snow' } });
      const summary = { messages: 1, text: 'snow' };
      for (const id of [SESSION, forked]) await assertLoaded(second, id, { version: 1, messages: turn(1), summary });
      await assert.rejects(second.create(made, { metadata: {}, messages: [] }), SessionExists);
    });
  }
}
