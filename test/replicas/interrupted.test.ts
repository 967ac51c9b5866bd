/** A turn whose server died, over a real PostgreSQL. */
import { LeaseEnded } from '@plugboard/kernel/contracts';
import t from 'tap';
import {
  ANNA,
  acquire,
  endLease,
  loaded,
  openStore,
  SYSTEM_CLOCK,
  session,
  turn,
} from '../../plugins/store-postgres/test/open-store.js';

t.test('PG-17 a turn that a server got as interrupted is returned to the next one if that dies before it ends', async (t) => {
  const first = await openStore({ clock: SYSTEM_CLOCK });
  const { schema, rows, close } = first;
  t.teardown(close);
  const next = async () => {
    const opened = await openStore({ clock: SYSTEM_CLOCK, schema });
    t.teardown(opened.close);
    return opened.store;
  };
  const [anna, ben] = [ANNA, session('ben')];
  const interrupted = (id: typeof anna, turnId: string) => ({ id, turnId, input: turn(1) });
  for (const [id, turnId] of [
    [anna, 'turn_1'],
    [ben, 'turn_2'],
  ] as const) {
    await acquire(first.store, turnId, id);
    await first.store.begin(id, { turnId, input: turn(1) });
  }
  await endLease(schema);
  const second = await next();
  t.strictSame((await acquire(second, 'turn_3')).interrupted, interrupted(anna, 'turn_1'));
  t.strictSame(await second.recover(), [interrupted(ben, 'turn_2')]);
  t.strictSame(await second.recover(), [], 'it has them');
  await endLease(schema);
  const third = await next();
  const found = await third.recover();
  t.strictSame(
    found.toSorted((a, b) => a.turnId.localeCompare(b.turnId)),
    [interrupted(anna, 'turn_1'), interrupted(ben, 'turn_2')],
  );
  await t.rejects(second.commit(ben, { turnId: 'turn_2', expected: 0, messages: turn(1) }), LeaseEnded, 'another server has it');
  await third.commit(ben, { turnId: 'turn_2', expected: 0, messages: turn(1) });
  await third.abandon(anna, 'turn_1');
  await endLease(schema);
  const fourth = await next();
  t.strictSame(await fourth.recover(), []);
  t.strictSame(await loaded(fourth, ben), { version: 1, messages: turn(1) });
  t.equal(await rows('record'), 1);
});
