import { setImmediate } from 'node:timers/promises';
import type { Principal } from '@plugboard/kernel';
import type { SharedStore } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { ScriptedModel, startRuntime, storeWith } from '../../harness.js';

type Uses = Parameters<SharedStore['count']>[0];

const TOKEN: Principal = { project: 'acme', token: 'ci', tokenId: 'tok_1', scopes: [], limits: { requestsPerMinute: 60 } };

/** Servers over one store, whose buckets drain with the clock. */
async function servers(count: number) {
  const clock = new ManualClock();
  const asked: Uses[] = [];
  const used = new Map<string, { requests: number; at: number }>();
  let failure: Error | undefined;
  const shared = {
    async count(uses: Uses) {
      asked.push(uses);
      if (failure) throw failure;
      return uses.map(({ name, perMinute, requests }) => {
        const now = clock.monotonic();
        const before = used.get(name) ?? { requests: 0, at: now };
        const left = Math.max(0, before.requests - ((now - before.at) / 60_000) * perMinute);
        used.set(name, { requests: left + requests, at: now });
        return left + requests;
      });
    },
  } as unknown as SharedStore;
  const start = () => startRuntime({ models: { fast: new ScriptedModel([]) }, store: storeWith({ shared }), clock });
  const runtimes = await Promise.all(Array.from({ length: count }, async () => (await start()).runtime));
  /** Sends requests to a server. @returns how many it admits. */
  const send = (server: number, requests: number) =>
    Array.from({ length: requests }, () => runtimes[server]?.countRequest(TOKEN)).filter((one) => one && !one.refused).length;
  const fail = (error: Error | undefined) => {
    failure = error;
  };
  return { clock, asked, runtimes, send, fail };
}

t.test('PG-24 requests count over all servers, with at most one statement a second for each', async (t) => {
  const { clock, asked, send } = await servers(2);
  t.equal(send(0, 40), 40);
  await setImmediate();
  t.equal(send(1, 10), 10);
  await setImmediate();
  t.match(
    asked.map(([use]) => use?.requests),
    [1, 1],
    'each asks at once',
  );
  clock.advance(1_000);
  await setImmediate();
  t.match(
    asked.map(([use]) => use?.requests),
    [1, 1, 39, 9],
  );
  t.equal(send(0, 20), 20, 'what the other has admitted within the last second comes on top');
  clock.advance(1_000);
  await setImmediate();
  t.equal(send(0, 20), 0);
  t.equal(asked.length, 5, 'nothing is asked without a request');
  clock.advance(30_000);
  t.equal(send(0, 40), 22, 'the bucket, which lacked 68, has drained evenly');
  t.notMatch(JSON.stringify(asked), /tok_1/, 'no id of a token is in the names');
});

t.test('PG-24 without the store a server counts its own requests, and adds them later', async (t) => {
  const { clock, asked, send, fail, runtimes } = await servers(1);
  fail(new Error('no connection'));
  t.equal(send(0, 70), 60);
  await setImmediate();
  fail(undefined);
  clock.advance(1_000);
  await setImmediate();
  t.match(
    asked.map(([use]) => use?.requests),
    [1, 60],
  );
  clock.advance(60_000);
  t.equal(send(0, 1), 1);
  send(0, 1);
  await setImmediate();
  await runtimes[0]?.stop(new AbortController().signal);
  clock.advance(10_000);
  t.equal(asked.length, 3, 'a server that has stopped asks nothing');
});
