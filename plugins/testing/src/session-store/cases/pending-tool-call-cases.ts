import assert from 'node:assert/strict';
import { assertLoaded, MINUTE, OWNER, SESSION, turn } from '../support/assertions.js';
import { EVERY_FORM } from '../support/fixtures.js';
import type { Suite } from '../support/suite.js';

/** Turns that wait for the results of the caller's tools. */
export function pendingToolCallCases({ add, clock, canReopen }: Suite): void {
  add('loads a pending turn by any of its calls, any number of times', async ({ pendingToolCalls: calls }) => {
    await calls.save(OWNER, ['call_1', 'call_2'], EVERY_FORM);
    await calls.save(OWNER, ['call_3'], turn(3));
    for (const call of ['call_1', 'call_2', 'call_1']) assert.deepEqual(await calls.load(OWNER, call), EVERY_FORM);
    assert.deepEqual(await calls.load(OWNER, 'call_3'), turn(3));
  });

  add('loads no pending turn for an unknown call or another owner', async ({ pendingToolCalls: calls }) => {
    await calls.save(OWNER, ['call_1'], turn(1));
    assert.equal(await calls.load(OWNER, 'call_2'), undefined);
    assert.equal(await calls.load({ ...OWNER, project: 'other' }, 'call_1'), undefined);
    assert.equal(await calls.load({ ...OWNER, agent: 'billing' }, 'call_1'), undefined);
  });

  add('finds the pending turns of a request at once, with their sizes', async ({ pendingToolCalls: calls }) => {
    await calls.save(OWNER, ['call_1', 'call_2'], EVERY_FORM);
    await calls.save(OWNER, ['call_3'], turn(3));
    const found = await calls.find(OWNER, ['call_3', 'unknown', 'call_2']);
    assert.deepEqual([...found.keys()].sort(), ['call_2', 'call_3']);
    assert.ok((found.get('call_2') ?? 0) > (found.get('call_3') ?? 0));
    assert.equal((await calls.find({ ...OWNER, project: 'other' }, ['call_1'])).size, 0);
    assert.equal((await calls.find(OWNER, [])).size, 0);
  });

  add('replaces a pending turn that has the same call', async ({ pendingToolCalls: calls }) => {
    await calls.save(OWNER, ['call_1', 'call_2'], turn(1));
    await calls.save(OWNER, ['call_1'], turn(2));
    assert.deepEqual(await calls.load(OWNER, 'call_1'), turn(2));
    assert.deepEqual(await calls.load(OWNER, 'call_2'), turn(1));
  });

  add('keeps pending tool calls apart from sessions', async (store) => {
    await store.pendingToolCalls.save(OWNER, [SESSION.key], turn(1));
    await assertLoaded(store, SESSION, { version: 0, messages: [] });
    await store.commit(SESSION, { expected: 0, messages: turn(2) });
    assert.deepEqual(await store.pendingToolCalls.load(OWNER, SESSION.key), turn(1));
  });

  if (clock) {
    add('keeps a pending turn for one hour', async ({ pendingToolCalls: calls }) => {
      await calls.save(OWNER, ['call_1'], turn(1));
      clock.advance(59 * MINUTE);
      assert.deepEqual(await calls.load(OWNER, 'call_1'), turn(1));
      clock.advance(2 * MINUTE);
      assert.equal(await calls.load(OWNER, 'call_1'), undefined);
    });
  }

  if (canReopen) {
    add('loads a pending turn after a restart', async (store, reopen) => {
      await store.pendingToolCalls.save(OWNER, ['call_1', 'call_2'], EVERY_FORM);
      const { pendingToolCalls } = await reopen();
      for (const call of ['call_1', 'call_2']) assert.deepEqual(await pendingToolCalls.load(OWNER, call), EVERY_FORM);
      assert.equal(await pendingToolCalls.load({ ...OWNER, project: 'other' }, 'call_1'), undefined);
    });
  }
}
