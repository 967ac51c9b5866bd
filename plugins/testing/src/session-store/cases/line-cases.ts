import assert from 'node:assert/strict';
import type { SessionStore } from '@plugboard/kernel';
import { conversationId, LeaseEnded, type SessionId, type SessionLease, type SharedStore } from '@plugboard/kernel/contracts';
import { eventually } from '../../base/eventually.js';
import { SESSION, turn } from '../support/assertions.js';
import { type AddShared, sharedOf } from '../support/shared-suite.js';

const NEVER = new AbortController().signal;

/** Puts a turn in line and gets its lease. */
async function acquire(store: SessionStore, turnId: string, id: SessionId = SESSION): Promise<SessionLease> {
  const result = await arrive(store, turnId, {}, id);
  assert.equal(result.kind, 'lease', `the turn ${turnId} gets the lease`);
  return (result as Extract<typeof result, { kind: 'lease' }>).lease;
}

type Arrival = Parameters<SharedStore['acquire']>[1];

function arrive(store: SessionStore, turnId: string, arrival: Partial<Arrival> = {}, id: SessionId = SESSION, signal = NEVER) {
  return sharedOf(store).acquire(id, { turnId, maxAhead: 100, title: 'a question', ...arrival }, signal);
}

/** Waits until a turn is in line. */
async function inLine(store: SessionStore, turnId: string): Promise<void> {
  await eventually(async () => (await sharedOf(store).findTurn(SESSION.project, turnId)) !== undefined);
}

function endedBy(why: LeaseEnded['why']) {
  return (error: unknown) => error instanceof LeaseEnded && error.why === why;
}

/** Lines of turns over two servers. */
export function lineCases(add: AddShared): void {
  add('runs one turn of a session at a time, in the order of arrival', async (one, two) => {
    const order: string[] = [];
    const run = async (store: SessionStore, turnId: string) => {
      const lease = await acquire(store, turnId);
      order.push(`begin ${turnId}`);
      assert.equal(lease.isHeld, true);
      await store.begin(SESSION, { turnId, input: turn(1) });
      const { version } = await store.load(SESSION);
      assert.equal(lease.version, version, 'the version of the lease is the current one');
      order.push(`end ${turnId}`);
      await store.commit(SESSION, { turnId, expected: version, messages: turn(version + 1) });
    };
    const first = await acquire(one, 'turn_0');
    const turns: Promise<void>[] = [];
    for (const [n, store] of [two, one, two].entries()) {
      turns.push(run(store, `turn_${n + 1}`));
      await inLine(one, `turn_${n + 1}`);
    }
    assert.deepEqual(order, [], 'the others wait');
    assert.equal(first.version, 0);
    await one.commit(SESSION, { turnId: 'turn_0', expected: 0, messages: turn(1) });
    await Promise.all(turns);
    assert.deepEqual(
      order,
      [1, 2, 3].flatMap((n) => [`begin turn_${n}`, `end turn_${n}`]),
    );
    assert.equal(await one.version(SESSION), 4);
  });

  add('lets every turn of many that come at once run', async (one, two) => {
    let running = 0;
    const run = async (store: SessionStore, turnId: string) => {
      const { version } = await acquire(store, turnId);
      assert.equal(++running, 1, 'another turn runs');
      await store.begin(SESSION, { turnId, input: turn(1) });
      running--;
      await store.commit(SESSION, { turnId, expected: version, messages: turn(version + 1) });
    };
    await Promise.all(Array.from({ length: 12 }, (_, n) => run(n % 2 === 0 ? one : two, `turn_${n}`)));
    assert.equal(await one.version(SESSION), 12);
  });

  add('counts the turns of the other server, and refuses one beyond the limit', async (one, two) => {
    await acquire(one, 'turn_1');
    assert.equal((await arrive(two, 'turn_2', { maxAhead: 0 })).kind, 'busy');
    const waiting = arrive(two, 'turn_3', { maxAhead: 1 });
    await inLine(one, 'turn_3');
    const many = Array.from({ length: 8 }, (_, n) => arrive(n % 2 === 0 ? one : two, `turn_${n + 4}`, { maxAhead: 1 }));
    for (const result of await Promise.all(many)) assert.equal(result.kind, 'busy');
    await one.abandon(SESSION, 'turn_1');
    assert.equal((await waiting).kind, 'lease');
    const other = { ...SESSION, key: 'ben' };
    assert.equal((await arrive(one, 'turn_20', { maxAhead: 0 }, other)).kind, 'lease', 'another session has another line');
  });

  add('returns the equal turn that is in line', async (one, two) => {
    assert.equal((await arrive(one, 'turn_1', { fingerprint: 'same' })).kind, 'lease');
    assert.deepEqual(await arrive(two, 'turn_2', { fingerprint: 'same' }), { kind: 'same', turnId: 'turn_1' });
    const other = arrive(two, 'turn_3', { fingerprint: 'other' });
    await inLine(one, 'turn_3');
    assert.deepEqual(await arrive(one, 'turn_4', { fingerprint: 'other' }), { kind: 'same', turnId: 'turn_3' });
    await one.abandon(SESSION, 'turn_1');
    await other;
    await two.abandon(SESSION, 'turn_3');
    assert.equal((await arrive(one, 'turn_5', { fingerprint: 'same' })).kind, 'lease', 'the equal turn is over');
  });

  add('gives the lease back with a commit, with one that fails, and with `abandon`', async (one, two) => {
    await acquire(one, 'turn_1');
    await one.commit(SESSION, { turnId: 'turn_1', expected: 0, messages: turn(1) });
    assert.equal((await arrive(two, 'turn_2', { maxAhead: 0 })).kind, 'lease', 'after the commit');
    await assert.rejects(two.commit(SESSION, { turnId: 'turn_2', expected: 7, messages: turn(2) }));
    await acquire(one, 'turn_3');
    await one.abandon(SESSION, 'turn_3');
    assert.equal((await arrive(two, 'turn_4', { maxAhead: 0 })).kind, 'lease', 'after `abandon`');
    assert.equal(await two.version(SESSION), 1);
  });

  add('takes a turn out of line whose wait is given up', async (one, two) => {
    await acquire(one, 'turn_1');
    const given = new AbortController();
    const waiting = arrive(two, 'turn_2', {}, SESSION, given.signal);
    await inLine(one, 'turn_2');
    given.abort(new Error('given up'));
    await assert.rejects(waiting, /given up/);
    await eventually(async () => (await sharedOf(one).findTurn(SESSION.project, 'turn_2')) === undefined);
    await assert.rejects(arrive(two, 'turn_3', {}, SESSION, given.signal), /given up/);
  });

  add('ends turns of both servers, and answers when they have ended', async (one, two) => {
    const lease = await acquire(one, 'turn_1');
    const waiting = [arrive(two, 'turn_2'), arrive(one, 'turn_3')];
    for (const turnId of ['turn_2', 'turn_3']) await inLine(one, turnId);
    let ended = false;
    const ends = sharedOf(two)
      .endTurns(SESSION, 'interrupted', NEVER)
      .then(() => {
        ended = true;
      });
    await Promise.all(waiting.map((turn) => assert.rejects(turn, endedBy('interrupted'))));
    await eventually(() => lease.signal.aborted);
    assert.ok(endedBy('interrupted')(lease.signal.reason));
    assert.equal(lease.isHeld, false);
    assert.equal(ended, false, 'the running turn is still in line');
    await one.abandon(SESSION, 'turn_1');
    await ends;
    assert.equal((await acquire(two, 'turn_4')).version, 0);
  });

  add('ends one turn by its id', async (one, two) => {
    const lease = await acquire(one, 'turn_1');
    const waiting = arrive(one, 'turn_2');
    await inLine(two, 'turn_2');
    assert.deepEqual(await sharedOf(two).findTurn(SESSION.project, 'turn_2'), SESSION);
    assert.equal(await sharedOf(two).findTurn('other', 'turn_2'), undefined, 'of another project');
    await Promise.all([
      sharedOf(two).endTurns(SESSION, 'cancelled', NEVER, 'turn_2'),
      assert.rejects(waiting, endedBy('cancelled')),
    ]);
    assert.equal(lease.signal.aborted, false);
    await sharedOf(two).endTurns(SESSION, 'cancelled', NEVER, 'turn_9');
    const given = AbortSignal.abort(new Error('given up'));
    await assert.rejects(sharedOf(two).endTurns(SESSION, 'cancelled', given), /given up/);
  });

  add('shows which sessions run, and one whose first turn is in line', async (one, two) => {
    const ben = { ...SESSION, key: 'ben' };
    await one.commit(SESSION, { expected: 0, messages: turn(1) });
    assert.equal((await two.info(SESSION))?.isRunning, false);
    await acquire(one, 'turn_1');
    await arrive(one, 'turn_2', { user: 'ben', title: 'a question' }, ben);
    assert.equal((await two.info(SESSION))?.isRunning, true);
    const conversation = conversationId(ben);
    for (const info of [await two.info(ben), await two.find(SESSION.project, conversation)]) {
      assert.ok(info);
      const { id, turns, user, title, isRunning } = info;
      assert.deepEqual(
        { id, turns, user, title, isRunning },
        { id: ben, turns: 0, user: 'ben', title: 'a question', isRunning: true },
      );
    }
    const page = await two.list(SESSION.project, { limit: 10, order: 'asc' });
    assert.deepEqual(
      page.map(({ id }) => id.key),
      [SESSION.key, 'ben'],
    );
    const [last] = await two.list(SESSION.project, { limit: 1, order: 'desc' });
    assert.equal(last?.conversation, conversation);
    const rest = await one.list(SESSION.project, { limit: 1, order: 'desc', after: last });
    assert.equal(rest[0]?.id.key, SESSION.key, 'the cursor of one server is valid on the other');
    assert.equal((await two.list(SESSION.project, { limit: 5, order: 'asc', user: 'ben' })).length, 1);
    await one.commit(ben, { turnId: 'turn_2', expected: 0, messages: turn(1) });
    const stored = await two.info(ben);
    assert.deepEqual([stored?.turns, stored?.isRunning], [1, false]);
    assert.equal((await two.list(SESSION.project, { limit: 5, order: 'asc' })).length, 2);
  });

  add('shows no session for work between turns', async (one, two) => {
    assert.equal((await arrive(one, 'work_1', { title: undefined })).kind, 'lease');
    assert.equal(await two.info(SESSION), undefined);
    assert.deepEqual(await two.list(SESSION.project, { limit: 5, order: 'asc' }), []);
    await one.create(SESSION, { metadata: {}, messages: [] });
    assert.equal((await two.info(SESSION))?.isRunning, false);
    const waiting = arrive(two, 'turn_1');
    await inLine(one, 'turn_1');
    await one.abandon(SESSION, 'work_1');
    assert.equal((await waiting).kind, 'lease');
  });
}
