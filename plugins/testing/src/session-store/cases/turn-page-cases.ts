import assert from 'node:assert/strict';
import { type TurnPage, VersionConflict } from '@plugboard/kernel/contracts';
import { assertLoaded, commitTurns, SESSION, tryToMutate, turn } from '../support/assertions.js';
import { EVERY_FORM } from '../support/fixtures.js';
import type { Suite } from '../support/suite.js';

const COPY = { ...SESSION, key: 'copy' };

/** Pages of turns. */
export function turnPageCases({ add, canReopen }: Suite): void {
  const pages: readonly (readonly [page: TurnPage, turns: readonly number[]])[] = [
    [{ limit: 10, order: 'asc' }, [1, 2, 3, 4, 5]],
    [{ limit: 10, order: 'desc' }, [5, 4, 3, 2, 1]],
    [{ limit: 2, order: 'asc' }, [1, 2]],
    [{ limit: 2, order: 'desc' }, [5, 4]],
    [{ limit: 2, order: 'asc', after: 2 }, [3, 4]],
    [{ limit: 2, order: 'desc', after: 4 }, [3, 2]],
    [{ limit: 2, order: 'asc', after: 4 }, [5]],
    [{ limit: 2, order: 'desc', after: 2 }, [1]],
    [{ limit: 2, order: 'asc', after: 0 }, [1, 2]],
    [{ limit: 2, order: 'asc', after: 5 }, []],
    [{ limit: 2, order: 'desc', after: 1 }, []],
    [{ limit: 2, order: 'asc', after: 9 }, []],
    [{ limit: 2, order: 'desc', after: 9 }, [5, 4]],
    [{ limit: 2, order: 'desc', after: 0 }, []],
  ];

  add('returns messages in pages of whole turns', async (store) => {
    await commitTurns(store, SESSION, 5);
    for (const [page, turns] of pages) {
      const expected = turns.map((n) => ({ turn: n, messages: turn(n) }));
      assert.deepEqual(await store.turns(SESSION, page), expected, JSON.stringify(page));
    }
  });

  add('ends a page of turns at `maxBytes`, with at least one turn', async (store) => {
    await commitTurns(store, SESSION, 5);
    const size = turn(1).reduce((sum, message) => sum + Buffer.byteLength(JSON.stringify(message)), 0);
    const read = async (page: Omit<TurnPage, 'limit'>) =>
      (await store.turns(SESSION, { limit: 4, ...page })).map(({ turn }) => turn);
    assert.deepEqual(await read({ order: 'asc', maxBytes: 1 }), [1]);
    assert.deepEqual(await read({ order: 'desc', maxBytes: size }), [5]);
    assert.deepEqual(await read({ order: 'asc', maxBytes: size + 1 }), [1, 2]);
    assert.deepEqual(await read({ order: 'desc', maxBytes: 2 * size, after: 4 }), [3, 2]);
    assert.deepEqual(await read({ order: 'asc', maxBytes: 99 * size }), [1, 2, 3, 4], '`limit` holds as well');
    await store.commit(SESSION, { expected: 5, messages: [{ role: 'user', content: 'ü'.repeat(size) }] });
    assert.deepEqual(await read({ order: 'desc', maxBytes: 2 * size }), [6], 'bytes of UTF-8, not characters');
  });

  add('says how large each turn is before it is read', async (store) => {
    const messages = [{ role: 'user', content: 'ü'.repeat(1_000) }] as const;
    await store.commit(SESSION, { expected: 0, messages });
    await store.commit(SESSION, { expected: 1, messages: turn(2) });
    const sizes: number[] = [];
    await store.turns(SESSION, { limit: 1, order: 'asc', reserve: (bytes) => sizes.push(bytes) });
    assert.equal(sizes.length, 1);
    assert.ok((sizes[0] ?? 0) >= 2_000, 'bytes of UTF-8');
    const full = new Error('full');
    const reserve = () => {
      throw full;
    };
    await assert.rejects(store.turns(SESSION, { limit: 2, order: 'asc', reserve }), (error) => error === full);
  });

  add('numbers the turns of a session that replaces a deleted one from 1', async (store) => {
    await commitTurns(store, SESSION, 2);
    await store.delete(SESSION);
    for (let n = 1; n <= 5; n++) await store.commit(SESSION, { expected: n + 2, messages: turn(n) });
    for (const [page, turns] of pages) {
      const expected = turns.map((n) => ({ turn: n, messages: turn(n) }));
      assert.deepEqual(await store.turns(SESSION, page), expected, JSON.stringify(page));
    }
  });

  const RECORD = '{"what":"happened \\u0000 \u{1f600}"}';

  add('keeps the record of a turn beside its messages', async (store) => {
    await store.commit(SESSION, { expected: 0, messages: turn(1), record: RECORD });
    await store.commit(SESSION, { expected: 1, messages: turn(2) });
    await store.commit(SESSION, { expected: 2, messages: [], record: 'of no message' });
    await assert.rejects(store.commit(SESSION, { expected: 2, messages: turn(3), record: 'late' }), VersionConflict);
    assert.deepEqual(await store.turns(SESSION, { limit: 10, order: 'asc' }), [
      { turn: 1, messages: turn(1), record: RECORD },
      { turn: 2, messages: turn(2) },
      { turn: 3, messages: [], record: 'of no message' },
    ]);
    await assertLoaded(store, SESSION, { version: 3, messages: [...turn(1), ...turn(2)] }, 'a record is not a message');
  });

  add('copies the records of the turns to a fork', async (store) => {
    await store.commit(SESSION, { expected: 0, messages: turn(1), record: 'one' });
    await store.commit(SESSION, { expected: 1, messages: turn(2), record: 'two' });
    await store.putSummary(SESSION, 2, { messages: 3, text: 'more than is copied' });
    await store.fork(SESSION, COPY.key, 1);
    await store.commit(COPY, { expected: 1, messages: turn(2) });
    await assertLoaded(store, COPY, { version: 2, messages: [...turn(1), ...turn(2)] });
    assert.deepEqual(await store.turns(COPY, { limit: 10, order: 'asc' }), [
      { turn: 1, messages: turn(1), record: 'one' },
      { turn: 2, messages: turn(2) },
    ]);
  });

  if (canReopen) {
    add('keeps records across a restart', async (store, reopen) => {
      await store.commit(SESSION, { expected: 0, messages: turn(1), record: RECORD });
      const second = await reopen();
      assert.deepEqual(await second.turns(SESSION, { limit: 1, order: 'asc' }), [{ turn: 1, messages: turn(1), record: RECORD }]);
    });
  }

  add('returns long turns and turns without messages unchanged', async (store) => {
    const turns = [turn(1), [], [...EVERY_FORM, ...EVERY_FORM], turn(4)];
    for (const [expected, messages] of turns.entries()) await store.commit(SESSION, { expected, messages });
    const found = await store.turns(SESSION, { limit: 10, order: 'asc' });
    assert.deepEqual(
      found,
      turns.map((messages, i) => ({ turn: i + 1, messages })),
    );
    for (const { messages } of found) tryToMutate(messages);
    assert.deepEqual(await store.turns(SESSION, { limit: 1, order: 'asc' }), [{ turn: 1, messages: turn(1) }]);
  });
}
