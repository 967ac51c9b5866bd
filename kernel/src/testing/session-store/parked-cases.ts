import assert from 'node:assert/strict';
import { EVERY_FORM } from './odd.js';
import type { Theme } from './theme.js';
import { assertLoaded, MINUTE, OWNER, SESSION, turn } from './told.js';

/** What stateless turns leave for their callers' next requests. */
export function parkedCases({ add, clock, canReopen }: Theme): void {
  add('gives parked messages back under each of their calls, as often as they are asked for', async (store) => {
    await store.park(OWNER, ['call_1', 'call_2'], EVERY_FORM);
    await store.park(OWNER, ['call_3'], turn(3));
    for (const call of ['call_1', 'call_2', 'call_1']) assert.deepEqual(await store.parked(OWNER, call), EVERY_FORM);
    assert.deepEqual(await store.parked(OWNER, 'call_3'), turn(3));
  });

  add('knows nothing under a call that nobody parked, nor under one of another owner', async (store) => {
    await store.park(OWNER, ['call_1'], turn(1));
    assert.equal(await store.parked(OWNER, 'call_2'), undefined);
    assert.equal(await store.parked({ ...OWNER, project: 'other' }, 'call_1'), undefined);
    assert.equal(await store.parked({ ...OWNER, agent: 'billing' }, 'call_1'), undefined);
  });

  add('holds what was parked last under a call whose id came twice', async (store) => {
    await store.park(OWNER, ['call_1', 'call_2'], turn(1));
    await store.park(OWNER, ['call_1'], turn(2));
    assert.deepEqual(await store.parked(OWNER, 'call_1'), turn(2));
    assert.deepEqual(await store.parked(OWNER, 'call_2'), turn(1));
  });

  add('parks nothing in a session', async (store) => {
    await store.park(OWNER, [SESSION.key], turn(1));
    await assertLoaded(store, SESSION, { version: 0, messages: [] });
    await store.commit(SESSION, { expected: 0, messages: turn(2) });
    assert.deepEqual(await store.parked(OWNER, SESSION.key), turn(1));
  });

  if (clock) {
    add('holds parked messages for an hour and no longer', async (store) => {
      await store.park(OWNER, ['call_1'], turn(1));
      clock.advance(59 * MINUTE);
      assert.deepEqual(await store.parked(OWNER, 'call_1'), turn(1));
      clock.advance(2 * MINUTE);
      assert.equal(await store.parked(OWNER, 'call_1'), undefined);
    });
  }

  if (canReopen) {
    add('gives parked messages back when it is opened again', async (store, again) => {
      await store.park(OWNER, ['call_1', 'call_2'], EVERY_FORM);
      const second = await again();
      for (const call of ['call_1', 'call_2']) assert.deepEqual(await second.parked(OWNER, call), EVERY_FORM);
      assert.equal(await second.parked({ ...OWNER, project: 'other' }, 'call_1'), undefined);
    });
  }
}
