import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { ScriptedModel, startRuntime, storeWith } from '../../harness.js';

t.test('the reason why the store does not work is logged once, and its recovery too', async (t) => {
  type Health = Awaited<ReturnType<typeof store.health>>;
  let health: () => Promise<Health> = async () => ({ ok: true });
  const store = storeWith({ health: () => health() });
  const clock = new ManualClock();
  const app = await startRuntime({ models: { fast: new ScriptedModel([]) }, store, clock });
  let seen = 0;
  /** The lines since the last call. */
  const fresh = () => {
    const lines = app.lines.slice(seen);
    seen = app.lines.length;
    return lines;
  };
  const logged = () => fresh().map(({ level, msg }) => `${level} ${msg}`);
  const notReady = 'error the session store does not work, so the server is not ready';

  t.equal(await app.runtime.ready(), true);
  t.same(logged(), []);
  health = async () => ({ ok: false, reason: 'the disk is full: free some space' });
  t.equal(await app.runtime.ready(), false);
  t.equal(await app.runtime.ready(), false);
  t.same(logged(), [`${notReady}: the disk is full: free some space`]);
  health = async () => ({ ok: true });
  t.equal(await app.runtime.ready(), true);
  t.equal(await app.runtime.ready(), true);
  t.same(logged(), ['info the session store works again']);
  health = async () => ({ ok: false });
  t.equal(await app.runtime.ready(), false);
  t.same(logged(), [`${notReady}: the store gives no reason`]);

  health = async () => ({ ok: true });
  await app.runtime.ready();
  health = () => new Promise(() => {});
  fresh();
  const ready = app.runtime.ready();
  clock.advance(2_000);
  t.equal(await ready, false, 'a store that does not answer');
  t.match(fresh(), [{ msg: /is not ready: its health check failed$/, err: { message: /no answer within 2 s/ } }]);
});
