import assert from 'node:assert/strict';
import { SessionExists } from '@plugboard/kernel/contracts';
import { assertInfo, assertLoaded, commitTurns, HOUR, OWNER, SESSION, turn } from '../support/assertions.js';
import type { Suite } from '../support/suite.js';

const COPY = { ...OWNER, key: 'copy' };

/** Summaries and forks. */
export function forkCases({ add, clock }: Suite): void {
  add('replaces the summary', async (store) => {
    await commitTurns(store, SESSION, 2);
    await store.putSummary(SESSION, 2, { messages: 2, text: 'one question' });
    const messages = [...turn(1), ...turn(2)];
    await assertLoaded(store, SESSION, { version: 2, messages, summary: { messages: 2, text: 'one question' } });
    await store.commit(SESSION, { expected: 2, messages: turn(3) });
    messages.push(...turn(3));
    await assertLoaded(store, SESSION, { version: 3, messages, summary: { messages: 2, text: 'one question' } });
    await store.putSummary(SESSION, 3, { messages: 4, text: "two questions'; --" });
    await assertLoaded(store, SESSION, { version: 3, messages, summary: { messages: 4, text: "two questions'; --" } });
  });

  add('ignores a summary of another version', async (store) => {
    await commitTurns(store, SESSION, 2);
    for (const version of [0, 1, 3]) await store.putSummary(SESSION, version, { messages: 1, text: 'stale' });
    await store.putSummary(COPY, 0, { messages: 0, text: 'of nothing' });
    await assertLoaded(store, SESSION, { version: 2, messages: [...turn(1), ...turn(2)] });
    await assertLoaded(store, COPY, { version: 0, messages: [] });
  });

  add('forks a session at a turn; both continue independently', async (store) => {
    await store.create(SESSION, { metadata: { topic: 'rain' }, messages: turn(1) });
    await store.commit(SESSION, { expected: 1, messages: turn(2), user: 'anna' });
    await store.commit(SESSION, { expected: 2, messages: turn(3) });
    await store.fork(SESSION, COPY.key, 2);
    await assertLoaded(store, COPY, { version: 2, messages: [...turn(1), ...turn(2)] });
    await assertInfo(store, COPY, { turns: 2, user: 'anna', metadata: { topic: 'rain' } });

    await store.commit(COPY, { expected: 2, messages: turn(8), user: 'ben' });
    await store.setMetadata(COPY, { topic: 'snow' });
    await assertLoaded(store, SESSION, { version: 3, messages: [...turn(1), ...turn(2), ...turn(3)] });
    await assertInfo(store, SESSION, { turns: 3, user: 'anna', metadata: { topic: 'rain' } });
    await store.delete(SESSION);
    await assertLoaded(store, COPY, { version: 3, messages: [...turn(1), ...turn(2), ...turn(8)] });
    const turns = await store.turns(COPY, { limit: 10, order: 'asc' });
    assert.deepEqual(
      turns.map(({ turn }) => turn),
      [1, 2, 3],
    );
  });

  add('forks with no turn and with all turns', async (store) => {
    await commitTurns(store, SESSION, 2);
    await store.fork(SESSION, 'none', 0);
    await assertLoaded(store, { ...OWNER, key: 'none' }, { version: 0, messages: [] });
    await assertInfo(store, { ...OWNER, key: 'none' }, { turns: 0, metadata: {} });
    await store.fork(SESSION, 'all', 9);
    await assertLoaded(store, { ...OWNER, key: 'all' }, { version: 2, messages: [...turn(1), ...turn(2)] });
  });

  add('refuses to fork over an existing session', async (store) => {
    await commitTurns(store, SESSION, 2);
    await store.create(COPY, { metadata: {}, messages: turn(7) });
    await assert.rejects(store.fork(SESSION, COPY.key, 1), SessionExists);
    await assert.rejects(store.fork(SESSION, SESSION.key, 1), SessionExists);
    await assertLoaded(store, COPY, { version: 1, messages: turn(7) });
    await assertLoaded(store, SESSION, { version: 2, messages: [...turn(1), ...turn(2)] });
  });

  add('forks to the key of a deleted session, and not from one', async (store) => {
    for (const id of [SESSION, COPY, COPY]) {
      const version = await store.version(id);
      await store.commit(id, { expected: version, messages: turn(9) });
      await store.delete(id);
    }
    await store.fork(SESSION, COPY.key, 1);
    await assertLoaded(store, COPY, { version: 4, messages: [] });
    assert.equal(await store.info(COPY), undefined, 'no fork of a deleted session');
    for (const n of [1, 2, 3]) await store.commit(SESSION, { expected: n + 1, messages: turn(n) });
    await store.fork(SESSION, COPY.key, 2);
    await assertLoaded(store, COPY, { version: 6, messages: [...turn(1), ...turn(2)] });
    assert.deepEqual(await store.turns(COPY, { limit: 1, order: 'desc' }), [{ turn: 2, messages: turn(2) }]);
    await store.commit(COPY, { expected: 6, messages: turn(3) });
    await assertInfo(store, COPY, { turns: 3, metadata: {} });
  });

  add('copies the summary to a fork only if all it covers is copied', async (store) => {
    await commitTurns(store, SESSION, 3);
    const summary = { messages: 4, text: 'two questions' };
    await store.putSummary(SESSION, 3, summary);
    await store.fork(SESSION, 'one', 1);
    await store.fork(SESSION, 'two', 2);
    await assertLoaded(store, { ...OWNER, key: 'one' }, { version: 1, messages: turn(1) });
    await assertLoaded(store, { ...OWNER, key: 'two' }, { version: 2, messages: [...turn(1), ...turn(2)], summary });
    await store.putSummary({ ...OWNER, key: 'two' }, 2, { messages: 2, text: 'another' });
    const messages = [...turn(1), ...turn(2), ...turn(3)];
    await assertLoaded(store, SESSION, { version: 3, messages, summary });
  });

  if (clock) {
    add('dates a fork from the time of the fork', async (store) => {
      await commitTurns(store, SESSION, 1);
      clock.advance(HOUR);
      await store.fork(SESSION, COPY.key, 1);
      const { createdAt, updatedAt } = (await store.info(COPY)) ?? {};
      assert.deepEqual([createdAt, updatedAt], [Math.floor(clock.now()), Math.floor(clock.now())]);
      const found = await store.list(OWNER.project, { limit: 10, order: 'asc' });
      assert.deepEqual(
        found.map(({ id }) => id.key),
        [SESSION.key, COPY.key],
      );
    });
  }
}
