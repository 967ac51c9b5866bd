import assert from 'node:assert/strict';
import { type StateChange, StateFull, type StateStore } from '@plugboard/kernel';
import { VersionConflict } from '@plugboard/kernel/contracts';
import { assertLoaded, DAY, HOUR, MINUTE, SESSION, turn } from '../support/assertions.js';
import { INJECTIONS, UNUSUAL_KEYS } from '../support/fixtures.js';
import type { OpenStore, Suite } from '../support/suite.js';

const ENTRY = 'transports.pager';
const OTHER = 'tools.pager';

/** What plugins keep in `ctx.state`. */
export function stateCases({ add, clock, canReopen }: Suite): void {
  add('returns, replaces and deletes a value of the state', async ({ state }) => {
    assert.equal(await state.get(ENTRY, 'offset'), undefined);
    await state.change([put('offset', '{"text":"\u{1f600}"}')]);
    assert.equal(await state.get(ENTRY, 'offset'), '{"text":"\u{1f600}"}');
    await state.change([put('offset', '2'), put('other', '3'), put('other', undefined), put('unknown', undefined)]);
    assert.equal(await state.get(ENTRY, 'offset'), '2');
    assert.equal(await state.get(ENTRY, 'other'), undefined);
  });

  add('of several writers that expect the same value of the state, one succeeds', async ({ state }) => {
    for (const expected of [undefined, '"first"']) {
      const texts = Array.from({ length: 8 }, (_, n) => (expected === undefined && n === 0 ? '"first"' : `${n}`));
      const set = await Promise.all(texts.map((text) => state.change([expecting(expected ?? null, put('key', text))])));
      assert.deepEqual(set.filter(Boolean), [true]);
      assert.equal(await state.get(ENTRY, 'key'), texts[set.indexOf(true)]);
      await state.change([put('key', '"first"')]);
    }
    assert.equal(await state.change([expecting(null, put('key', '1'))]), false);
    assert.equal(await state.change([expecting('"first"', put('other', '1'))]), false);
    assert.equal(await state.get(ENTRY, 'key'), '"first"');
    assert.equal(await state.get(ENTRY, 'other'), undefined);
  });

  add('applies changes of the state that expect values, all or nothing', async ({ state }) => {
    assert.equal(
      await state.change([put('a', '1'), expecting(null, put('b', '1')), expecting(null, put('gone', undefined))]),
      true,
    );
    for (const [expected, text] of [
      [null, '2'],
      ['2', '2'],
      [null, undefined],
      ['2', undefined],
    ] as const) {
      assert.equal(await state.change([put('a', '2'), expecting(expected, put('b', text)), put('c', '2')]), false);
    }
    assert.deepEqual(await state.list(ENTRY, { prefix: '' }), [
      { key: 'a', text: '1' },
      { key: 'b', text: '1' },
    ]);
    const before = [expecting('1', put('b', '2')), put('b', '3')];
    assert.equal(await state.change([expecting('1', put('a', undefined)), ...before]), true);
    assert.deepEqual(await state.list(ENTRY, { prefix: '' }), [{ key: 'b', text: '3' }]);
  });

  add('isolates the state of entries', async ({ state }) => {
    const entries = [ENTRY, OTHER, `${ENTRY}.a`, 'transports', 'TRANSPORTS.pager', ...INJECTIONS];
    for (const entry of entries) await state.change([{ entry, key: 'a', text: JSON.stringify(entry) }]);
    for (const entry of entries) {
      assert.equal(await state.get(entry, 'a'), JSON.stringify(entry));
      assert.deepEqual(await state.list(entry, { prefix: '' }), [{ key: 'a', text: JSON.stringify(entry) }]);
    }
    await state.change([{ entry: OTHER, key: 'a', text: undefined }]);
    assert.equal(await state.get(ENTRY, 'a'), JSON.stringify(ENTRY));
  });

  add('keeps unusual keys of the state apart', async ({ state }) => {
    const keys = [...UNUSUAL_KEYS, ...INJECTIONS];
    await state.change(keys.map((key, n) => put(key, String(n))));
    for (const [n, key] of keys.entries()) assert.equal(await state.get(ENTRY, key), String(n), JSON.stringify(key));
  });

  add('lists keys of the state by prefix, in the order of their bytes, page by page', async ({ state }) => {
    const keys = ['a', 'a/', 'a/1', 'a/10', 'a/2', 'a/%', 'a/_', 'a/\uffe0', 'a/\u{1f600}', 'b/1', 'A/1'];
    await state.change(keys.map((key) => put(key, '0')));
    await state.change([{ entry: OTHER, key: 'a/3', text: '0' }]);
    const listed = (page: Parameters<typeof state.list>[1]) => keysOf(state, page);
    const under = ['a/', 'a/%', 'a/1', 'a/10', 'a/2', 'a/_', 'a/\uffe0', 'a/\u{1f600}'];
    assert.deepEqual(await listed({ prefix: 'a/' }), under);
    assert.deepEqual(await listed({ prefix: '' }), ['A/1', 'a', ...under, 'b/1']);
    assert.deepEqual(await listed({ prefix: 'a/', limit: 2 }), under.slice(0, 2));
    assert.deepEqual(await listed({ prefix: 'a/', after: 'a/%', limit: 2 }), ['a/1', 'a/10']);
    assert.deepEqual(await listed({ prefix: 'a/', after: 'a' }), under);
    assert.deepEqual(await listed({ prefix: 'a/1', after: 'a/10' }), []);
  });

  add('changes the state with a turn, or not at all', async (store) => {
    await store.begin(SESSION, { turnId: 'turn_1', input: turn(1).slice(0, 1) });
    await store.commit(SESSION, { turnId: 'turn_1', expected: 0, messages: turn(1), state: [put('offset', '1')] });
    assert.equal(await store.state.get(ENTRY, 'offset'), '1');
    const late = store.commit(SESSION, { expected: 0, messages: turn(2), state: [put('offset', '2')] });
    await assert.rejects(late, VersionConflict);
    assert.equal(await store.state.get(ENTRY, 'offset'), '1');
  });

  add('stores no turn whose changes of the state expect another value', async (store) => {
    await store.state.change([put('offset', '1')]);
    await store.begin(SESSION, { turnId: 'turn_1', input: turn(1).slice(0, 1) });
    const state = [put('seen', '1'), expecting('0', put('offset', '2'))];
    await assert.rejects(store.commit(SESSION, { turnId: 'turn_1', expected: 0, messages: turn(1), state }), VersionConflict);
    await assertLoaded(store, SESSION, { version: 0, messages: [] });
    assert.deepEqual(await keysOf(store.state, { prefix: '' }), ['offset']);
    const again = [expecting('1', put('offset', '2'))];
    await store.commit(SESSION, { turnId: 'turn_1', expected: 0, messages: turn(1), state: again });
    assert.equal(await store.state.get(ENTRY, 'offset'), '2');
  });

  add('keeps the state when sessions are deleted', async (store) => {
    await store.commit(SESSION, { expected: 0, messages: turn(1), state: [put('offset', '1')] });
    await store.delete(SESSION);
    assert.equal(await store.state.get(ENTRY, 'offset'), '1');
  });

  if (clock) {
    add('keeps the state without a limit of time', async ({ state }) => {
      await state.change([put('offset', '1')]);
      clock.advance(400 * DAY);
      assert.equal(await state.get(ENTRY, 'offset'), '1');
    });

    add('has no key of the state that has expired', async ({ state }) => {
      await state.change([expiring('a', DAY), expiring('b', 3 * DAY), put('c', '1'), expiring('d', DAY)]);
      clock.advance(DAY - MINUTE);
      assert.equal((await state.list(ENTRY, { prefix: '' })).length, 4);
      // A new value has an expiry of its own, or none.
      await state.change([put('d', '2'), { ...expiring('e', 2 * DAY), entry: OTHER }]);
      clock.advance(2 * MINUTE);
      assert.equal(await state.get(ENTRY, 'a'), undefined);
      assert.deepEqual(await keysOf(state, { prefix: '', limit: 2 }), ['b', 'c']);
      const isStale = await state.change([expecting('1', expiring('a', HOUR))]);
      assert.equal(isStale, false, 'compared with a value that has expired');
      assert.equal(await state.change([expecting(null, expiring('a', HOUR))]), true);
      clock.advance(2 * DAY);
      assert.deepEqual(await keysOf(state, { prefix: '' }), ['c', 'd']);
      assert.deepEqual(await state.list(OTHER, { prefix: '' }), []);
    });

    add('changes keys of the state that expire with a turn', async (store) => {
      await store.commit(SESSION, { expected: 0, messages: turn(1), state: [expiring('seen/1', DAY), put('offset', '1')] });
      assert.deepEqual(await keysOf(store.state, { prefix: '' }), ['offset', 'seen/1']);
      clock.advance(DAY + MINUTE);
      assert.deepEqual(await keysOf(store.state, { prefix: '' }), ['offset']);
    });
  }

  if (canReopen) {
    add('keeps the state after a restart', async (store, reopen) => {
      await store.state.change([put('offset', '1'), put('old', '1'), expiring('seen', DAY)]);
      await store.commit(SESSION, { expected: 0, messages: turn(1), state: [put('offset', '2'), put('old', undefined)] });
      const { state } = await reopen();
      assert.deepEqual(await state.list(ENTRY, { prefix: '' }), [
        { key: 'offset', text: '2' },
        { key: 'seen', text: '1' },
      ]);
      clock?.advance(DAY + MINUTE);
      if (clock) assert.deepEqual(await keysOf(state, { prefix: '' }), ['offset']);
    });
  }
}

/** The limits of the state. */
export function stateLimitCases({ addOwn, clock }: Suite, openWith: OpenStore<number>): void {
  const fill = (state: StateStore) => state.change(Array.from({ length: 10 }, (_, n) => put(`k${n}`, '0')));
  addOwn(
    'refuses more keys of the state than an entry may have, and changes nothing',
    'StateStore',
    openWith(10),
    async ({ state }) => {
      await fill(state);
      await assert.rejects(state.change([put('k0', '1'), put('new', '0')]), StateFull);
      await assert.rejects(state.change([expecting(null, put('new', '0'))]), StateFull);
      assert.equal(await state.get(ENTRY, 'k0'), '0');
      assert.equal(await state.get(ENTRY, 'new'), undefined);
      await state.change([put('k0', '1')]);
      await state.change([put('new', '0'), put('k1', undefined)]);
      await state.change([{ entry: OTHER, key: 'a', text: '0' }]);
      assert.equal(await state.get(ENTRY, 'new'), '0');
      await assert.rejects(state.change([put('newer', '0')]), StateFull);
    },
  );
  addOwn('commits no turn whose changes of the state are refused', 'TurnCommit.state', openWith(10), async (store) => {
    await fill(store.state);
    const full = store.commit(SESSION, { expected: 0, messages: turn(1), state: [put('new', '0')] });
    await assert.rejects(full, StateFull);
    await assertLoaded(store, SESSION, { version: 0, messages: [] });
  });
  if (!clock) return;
  addOwn('does not count keys of the state that have expired', 'StateStore', openWith(10), async ({ state }) => {
    await fill(state);
    await state.change([expiring('k1', HOUR), expiring('k2', HOUR)]);
    await assert.rejects(state.change([put('new', '0')]), StateFull);
    clock.advance(HOUR + MINUTE);
    await state.change([put('new', '0'), put('k1', '1')]);
    await assert.rejects(state.change([put('newer', '0')]), StateFull);
    assert.equal((await state.list(ENTRY, { prefix: '' })).length, 10);
  });
}

async function keysOf(state: StateStore, page: Parameters<StateStore['list']>[1]): Promise<readonly string[]> {
  return (await state.list(ENTRY, page)).map(({ key }) => key);
}

function put(key: string, text: string | undefined): StateChange {
  return { entry: ENTRY, key, text };
}

function expecting(expected: string | null, change: StateChange): StateChange {
  return { ...change, expected };
}

function expiring(key: string, expiresIn: number): StateChange {
  return { ...put(key, '1'), expiresIn };
}
