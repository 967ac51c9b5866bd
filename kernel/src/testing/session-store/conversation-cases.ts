import assert from 'node:assert/strict';
import { conversationId } from '../../contracts/conversation-id.js';
import { SessionExists, type SessionId, VersionConflict } from '../../contracts/conversation-store.js';
import { assertInfo, assertLoaded, commitTurns, HOUR, OWNER, SESSION, turn } from './assertions.js';
import { EVERY_FORM, ODD_KEYS, ODD_TEXTS } from './fixtures.js';
import type { Suite } from './suite.js';

/** Sessions that are made before their first turn, and what is known of a session besides its messages. */
export function conversationCases({ add, clock, canReopen }: Suite): void {
  add('knows nothing of a session that nobody has used, and does nothing to it', async (store) => {
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

  add('makes a session before its first turn', async (store) => {
    await store.create(SESSION, { metadata: { topic: 'rain' }, messages: [] });
    await assertLoaded(store, SESSION, { version: 0, messages: [] });
    await assertInfo(store, SESSION, { turns: 0, metadata: { topic: 'rain' } });
    await store.commit(SESSION, { expected: 0, messages: turn(1) });
    await assertLoaded(store, SESSION, { version: 1, messages: turn(1) });
    await assertInfo(store, SESSION, { turns: 1, metadata: { topic: 'rain' } });
  });

  add('makes a session with messages, which are turn 1 of it', async (store) => {
    await store.create(SESSION, { metadata: {}, messages: EVERY_FORM });
    await assertLoaded(store, SESSION, { version: 1, messages: EVERY_FORM });
    assert.deepEqual(await store.turns(SESSION, { limit: 10, order: 'asc' }), [{ turn: 1, messages: EVERY_FORM }]);
    await assert.rejects(store.commit(SESSION, { expected: 0, messages: turn(2) }), VersionConflict);
    await store.commit(SESSION, { expected: 1, messages: turn(2) });
    await assertInfo(store, SESSION, { turns: 2, metadata: {} });
  });

  add('makes no session where there is one', async (store) => {
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

  add('knows a session by its three values, and by its opaque id in its project alone', async (store) => {
    const ids: SessionId[] = [
      ...ODD_KEYS.map((key) => ({ ...SESSION, key })),
      { ...SESSION, agent: 'billing' },
      { ...SESSION, project: 'other' },
    ];
    for (const [n, id] of ids.entries()) await store.create(id, { metadata: { n: `${n}` }, messages: [] });
    for (const [n, id] of ids.entries()) {
      const info = await assertInfo(store, id, { turns: 0, metadata: { n: `${n}` } });
      assert.deepEqual(await store.find(id.project, conversationId(id)), info);
      assert.equal(await store.find(`${id.project}s`, conversationId(id)), undefined);
    }
    for (const conversation of [conversationId({ ...SESSION, key: 'nobody' }), ...ODD_KEYS])
      assert.equal(await store.find(SESSION.project, conversation), undefined, conversation);
  });

  add('keeps who is talking, as the newest turn says that says it', async (store) => {
    for (const [n, user] of [undefined, 'anna', undefined, 'ben', ...ODD_KEYS].entries()) {
      await store.commit(SESSION, { expected: n, messages: turn(n), user });
      const expected = n === 0 ? undefined : (user ?? 'anna');
      await assertInfo(store, SESSION, { turns: n + 1, user: expected, metadata: {} });
    }
  });

  add('keeps what was attached, in the place of what was attached before', async (store) => {
    await store.create(SESSION, { metadata: { a: '1', b: '2' }, messages: [] });
    await store.setMetadata(SESSION, { b: '3' });
    await assertInfo(store, SESSION, { turns: 0, metadata: { b: '3' } });
    const names = ODD_KEYS.filter((key) => key !== '__proto__');
    for (const texts of [names, ODD_TEXTS]) {
      const metadata = Object.fromEntries(texts.map((text, n) => [names[n] ?? '', text]));
      await store.setMetadata(SESSION, metadata);
      await assertInfo(store, SESSION, { turns: 0, metadata });
    }
    await store.setMetadata(SESSION, {});
    await assertInfo(store, SESSION, { turns: 0, metadata: {} });
  });

  add('S-19 refuses metadata with a __proto__, or keeps it as data', async (store) => {
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

  add('does not change with the metadata that it was given, nor with what it gave', async (store) => {
    const metadata = { topic: 'rain' };
    await store.create(SESSION, { metadata, messages: [] });
    metadata.topic = 'snow';
    await assertInfo(store, SESSION, { turns: 0, metadata: { topic: 'rain' } });
    await store.setMetadata(SESSION, metadata);
    metadata.topic = 'hail';
    for (const info of [await store.info(SESSION), ...(await store.list(SESSION.project, { limit: 1, order: 'asc' }))])
      Reflect.set(info?.metadata ?? {}, 'topic', 'spoilt');
    await assertInfo(store, SESSION, { turns: 0, metadata: { topic: 'snow' } });
  });

  if (clock) {
    add('keeps when a session was made, and when it was changed', async (store) => {
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
      assert.deepEqual(await times(), [made, made + 2 * HOUR], 'other metadata');
      clock.advance(HOUR);
      await store.load(SESSION);
      await store.begin(SESSION, { turnId: 'turn_3', input: turn(3) });
      await store.abandon(SESSION, 'turn_3');
      await store.putSummary(SESSION, 2, { messages: 2, text: 'rain' });
      await store.fork(SESSION, 'copy', 1);
      await assert.rejects(store.create(SESSION, { metadata: {}, messages: [] }), SessionExists);
      assert.deepEqual(await times(), [made, made + 2 * HOUR], 'nothing else');

      const other = { ...SESSION, key: 'ben' };
      await store.commit(other, { expected: 0, messages: turn(1) });
      assert.equal((await store.info(other))?.createdAt, made + 3 * HOUR, 'made by its first turn');
    });
  }

  if (canReopen) {
    add('knows what it knew of its sessions when it is opened again', async (store, again) => {
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
      const second = await again();
      assert.deepEqual(await second.list(OWNER.project, { limit: 10, order: 'asc' }), before);
      await assertInfo(second, made, { turns: 1, metadata: { topic: 'rain' } });
      await assertInfo(second, SESSION, { turns: 1, user: 'anna', metadata: { topic: 'snow' } });
      const summary = { messages: 1, text: 'snow' };
      for (const id of [SESSION, forked]) await assertLoaded(second, id, { version: 1, messages: turn(1), summary });
      await assert.rejects(second.create(made, { metadata: {}, messages: [] }), SessionExists);
    });
  }
}
