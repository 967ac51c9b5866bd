import type { Principal } from '@plugboard/kernel';
import { OPEN, type RequestCount } from '@plugboard/kernel/contracts';
import { ManualClock, testContext } from '@plugboard/testing';
import t from 'tap';
import { RequestRates } from '../../../src/engine/limits/request-rates.js';
import plugin from '../../../src/index.js';

const MINUTE = 60_000;

function limited(tokenId: string, requestsPerMinute: number): Principal {
  return { project: 'acme', token: 'ci', tokenId, scopes: [], limits: { requestsPerMinute } };
}

function rates(clock = new ManualClock()): RequestRates {
  return testContext(plugin, { clock }).container.resolve(RequestRates);
}

/** The decision about a request. */
function take(limits: RequestRates, principal: Principal, shared?: number) {
  const { limit, refused }: RequestCount = limits.count(principal, shared);
  return { ...limit, passed: refused === undefined, ...(refused && { wait: refused.options.retryAfter }) };
}

t.test('C-169 a token may spend its limit at once, then gets requests back evenly', async (t) => {
  const clock = new ManualClock();
  const limits = rates(clock);
  const ask = () => take(limits, limited('a', 60));
  for (let left = 59; left >= 0; left--) t.match(ask(), { passed: true, remaining: left });
  t.match(ask(), { passed: false, wait: 1, remaining: 0 });
  clock.advance(999);
  t.match(ask(), { passed: false, wait: 0.001 });
  clock.advance(1);
  t.match(ask(), { passed: true });
  t.match(ask(), { passed: false });
  clock.advance(10 * MINUTE);
  t.match(ask(), { passed: true, remaining: 59 });
});

t.test('C-169 Retry-After is in whole seconds, at most a minute', async (t) => {
  const clock = new ManualClock();
  const limits = rates(clock);
  const ask = () => take(limits, limited('a', 1));
  t.match(ask(), { passed: true, requestsPerMinute: 1, reset: 60_000 });
  t.match(ask(), { passed: false, wait: 60 });
  clock.advance(500);
  t.match(ask(), { passed: false, wait: 59.5, reset: 59_500 });
  clock.advance(59_499);
  t.match(ask(), { passed: false, wait: 0.001, reset: 1 });
  t.match(take(limits, limited('none', 0.5)), { passed: false, wait: 60 });
});

t.test('each token is counted separately by its id', async (t) => {
  const limits = rates();
  t.match(take(limits, limited('a', 1)), { passed: true });
  t.match(take(limits, limited('b', 1)), { passed: true });
  t.match(take(limits, limited('a', 1)), { passed: false });
  const { tokenId: _, ...nameless } = limited('', 1);
  t.match(take(limits, nameless), { passed: true });
  t.match(take(limits, nameless), { passed: false });
  t.match(take(limits, { ...nameless, project: 'beta' }), { passed: true });
});

t.test('a lowered limit takes effect at once', async (t) => {
  const limits = rates();
  t.match(take(limits, limited('a', 100)), { remaining: 99 });
  t.match(take(limits, limited('a', 10)), { remaining: 8 });
});

t.test('only tokens used within the last minute are kept', async (t) => {
  const clock = new ManualClock();
  const limits = rates(clock);
  for (let n = 0; n < 1_000; n++) take(limits, limited(`early ${n}`, 5));
  clock.advance(MINUTE / 2);
  for (let n = 0; n < 10; n++) take(limits, limited(`late ${n}`, 5));
  take(limits, limited('early 7', 5));
  t.equal(limits.size, 1_010);
  clock.advance(MINUTE / 2);
  take(limits, limited('late 0', 5));
  t.equal(limits.size, 11, 'those that were used since, and one of the early ones');
});

t.test('S-41 all callers of a project share the limit of the project', async (t) => {
  const clock = new ManualClock();
  const limits = rates(clock);
  const acme = 3;
  t.match(take(limits, limited('a', 2), acme), { passed: true, remaining: 1 });
  t.match(take(limits, limited('b', 60), acme), { passed: true, requestsPerMinute: 3 });
  t.match(take(limits, limited('a', 2), acme), { passed: true, remaining: 0 });
  t.match(take(limits, limited('b', 60), acme), { passed: false, requestsPerMinute: 3, remaining: 0, wait: 20 });
  t.match(take(limits, { ...limited('b', 60), project: 'beta' }), { passed: true, remaining: 58 });
  clock.advance(MINUTE);
  t.match(take(limits, limited('b', 60), acme), { passed: true }, 'what was refused did not count for the token either');
});

t.test('S-41 the callers of an open server share the limit of the default project', async (t) => {
  const limits = rates();
  t.match(take(limits, OPEN, 1), { passed: true, remaining: 0 });
  t.match(take(limits, OPEN, 1), { passed: false });
});

t.test('a principal without a limit is not counted', async (t) => {
  const limits = rates();
  t.strictSame(take(limits, { project: 'acme', scopes: [], limits: { runningTurns: 1 } }), { passed: true });
  t.equal(limits.size, 0);
});
