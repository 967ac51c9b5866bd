import assert from 'node:assert/strict';
import { LeaseEnded } from '@plugboard/kernel/contracts';
import { eventually } from '../../base/eventually.js';
import { SESSION, turn } from '../support/assertions.js';
import { type AddShared, sharedOf } from '../support/shared-suite.js';

const NEVER = new AbortController().signal;
const MINUTE = 60_000;

/** What two servers share beside the lines of their turns. */
export function sharedCases(add: AddShared): void {
  add('hands the session of a server that stops to the next turn, once with its input', async (one, two, stop) => {
    const acquire = (turnId: string) => sharedOf(two).acquire(SESSION, { turnId, maxAhead: 9, title: '' }, NEVER);
    await sharedOf(one).acquire(SESSION, { turnId: 'turn_1', maxAhead: 0 }, NEVER);
    await one.begin(SESSION, { turnId: 'turn_1', input: turn(1) });
    assert.deepEqual(await two.recover(), [], 'its server is alive');
    const waiting = acquire('turn_2');
    await eventually(async () => (await sharedOf(two).findTurn(SESSION.project, 'turn_2')) !== undefined);
    await stop();
    const result = await waiting;
    assert.equal(result.kind, 'lease');
    const found = [...(await two.recover())];
    if (result.kind === 'lease' && result.lease.interrupted) found.push(result.lease.interrupted);
    assert.deepEqual(found, [{ id: SESSION, turnId: 'turn_1', input: turn(1) }]);
    await two.commit(SESSION, { turnId: 'turn_2', expected: 0, messages: turn(2) });
    assert.deepEqual(await two.recover(), []);
    assert.equal((await acquire('turn_3')).kind, 'lease');
  });

  add('recovers a turn of a server that stops, also if no turn follows', async (one, two, stop) => {
    await sharedOf(one).acquire(SESSION, { turnId: 'turn_1', maxAhead: 0 }, NEVER);
    await one.begin(SESSION, { turnId: 'turn_1', input: turn(1) });
    const other = { ...SESSION, key: 'ben' };
    await sharedOf(one).acquire(other, { turnId: 'turn_2', maxAhead: 0 }, NEVER);
    await stop();
    assert.deepEqual(await two.recover(), [{ id: SESSION, turnId: 'turn_1', input: turn(1) }], 'only what began');
    assert.deepEqual(await two.recover(), []);
  });

  add('carries live texts to readers on the other server, from the beginning', async (one, two) => {
    let opened = 0;
    const texts = ['first', '', 'a\u0000b \ud83d', '"quoted"'];
    const more = Promise.withResolvers<void>();
    const withdraw = sharedOf(one).offer('topic', async function* () {
      opened++;
      yield* texts;
      await more.promise;
      yield 'last';
    });
    const reading = new AbortController();
    const found: (string | undefined)[] = [];
    const read = async () => {
      for await (const { text } of sharedOf(two).read('topic', reading.signal)) found.push(text);
    };
    const reader = read();
    await eventually(() => found.length === texts.length);
    assert.deepEqual(found, texts);
    const late = sharedOf(two).read('topic', reading.signal)[Symbol.asyncIterator]();
    assert.equal((await late.next()).value?.text, 'first', 'a later reader starts at the beginning');
    more.resolve();
    withdraw();
    await eventually(() => found.length === texts.length + 2);
    assert.deepEqual(found.slice(texts.length), ['last', undefined], 'the offer has ended');
    assert.equal(opened, 1);
    const withdrawNext = sharedOf(one).offer('topic', async function* () {
      yield 'next';
    });
    await eventually(() => found.length === texts.length + 4);
    assert.deepEqual(found.slice(texts.length + 2), ['next', undefined], 'a later offer of the topic');
    withdrawNext();
    reading.abort();
    await reader;
    await late.return?.();
  });

  add('tells readers that the server of an offer has stopped', async (one, two, stop) => {
    sharedOf(one).offer('topic', async function* (signal) {
      yield 'first';
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    });
    const reader = sharedOf(two).read('topic', NEVER)[Symbol.asyncIterator]();
    const first = (await reader.next()).value;
    assert.equal(first?.text, 'first');
    await stop();
    assert.deepEqual((await reader.next()).value, { offer: first?.offer });
    await reader.return?.();
  });

  add('opens an offer only while the other server reads it', async (one, two) => {
    const opened: AbortSignal[] = [];
    const withdraw = sharedOf(one).offer('topic', async function* (signal) {
      opened.push(signal);
      yield 'first';
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    });
    const own = new AbortController();
    const ownReader = sharedOf(one).read('topic', own.signal)[Symbol.asyncIterator]();
    const unread = ownReader.next();
    for (let n = 1; n <= 2; n++) {
      const reader = sharedOf(two).read('topic', NEVER)[Symbol.asyncIterator]();
      // It may see the end of what was opened before.
      do assert.equal((await reader.next()).done, false);
      while (opened.length < n);
      assert.equal(opened.length, n);
      await reader.return?.();
      await eventually(() => opened[n - 1]?.aborted);
    }
    own.abort();
    assert.equal((await unread).done, true, 'a server does not read its own offers');
    withdraw();
  });

  add('counts requests of both servers in buckets of a minute', async (one, two) => {
    const use = (requests: number, name = 'anna') => ({ name, perMinute: 6, requests });
    assert.deepEqual(await sharedOf(one).count([use(4), use(1, 'ben')]), [4, 1]);
    const [anna = 0, ben = 0] = await sharedOf(two).count([use(4), use(1, 'ben')]);
    assert.ok(anna > 7 && anna <= 8, `${anna} in the bucket of 6`); // it drains
    assert.ok(ben > 1 && ben <= 2);
    const [again = 0, twice = 0] = await sharedOf(one).count([use(0), use(0)]);
    assert.ok(again > 6 && again === twice && again <= anna);
    assert.deepEqual(await sharedOf(one).count([]), []);
  });

  add('PG-19 claims an idempotency key once over both servers, until its server stops', async (one, two, stop) => {
    const keyed = (key: string) => ({ project: 'acme', route: '/v1/x', key });
    const both = [one, two, one, two].map(({ idempotency }) => idempotency.claim(keyed('race'), 'f1'));
    assert.deepEqual((await Promise.all(both)).map((found) => found?.result).sort(), [
      'running',
      'running',
      'running',
      undefined,
    ]);
    const [claimed, began] = [keyed('claimed'), keyed('began')];
    for (const key of [claimed, began]) assert.equal(await one.idempotency.claim(key, 'f1'), undefined);
    await one.idempotency.put({ key: began, fingerprint: 'f1', result: 'began' });
    for (const key of [claimed, began]) {
      await two.idempotency.release(key); // it is not this server's
      assert.deepEqual(await two.idempotency.claim(key, 'f2'), { key, fingerprint: 'f1', result: 'running' });
    }
    await stop();
    assert.deepEqual(await two.idempotency.claim(began, 'f1'), { key: began, fingerprint: 'f1', result: 'began' });
    assert.equal(await two.idempotency.claim(claimed, 'f2'), undefined);
    assert.deepEqual(await two.idempotency.claim(claimed, 'f1'), { key: claimed, fingerprint: 'f2', result: 'running' });
  });

  add('lets one holder at a time have a name', async (one, two, stop) => {
    const first = await sharedOf(one).hold('key', NEVER);
    assert.equal(first.signal.aborted, false);
    let held = false;
    const second = sharedOf(two)
      .hold('key', NEVER)
      .then((right) => {
        held = true;
        return right;
      });
    const given = new AbortController();
    const third = sharedOf(one).hold('key', given.signal);
    given.abort(new Error('given up'));
    await assert.rejects(third, /given up/);
    await (await sharedOf(two).hold('other', NEVER)).release();
    assert.equal(held, false);
    await first.release();
    await first.release();
    const right = await second;
    const last = sharedOf(one).hold('key', NEVER);
    await right.release();
    await last;
    await stop();
    assert.ok((await last).signal.reason instanceof LeaseEnded, 'a right ends with its server');
    await (await sharedOf(two).hold('key', NEVER)).release();
  });

  add('has the same time on both servers', async (one, two) => {
    const difference = Math.abs(sharedOf(one).now() - sharedOf(two).now());
    assert.ok(difference < MINUTE, `${difference} ms`);
    await one.commit(SESSION, { expected: 0, messages: turn(1) });
    const stored = (await two.info(SESSION))?.updatedAt ?? 0;
    assert.ok(Math.abs(stored - sharedOf(two).now()) < MINUTE, 'and for what is stored');
  });
}
