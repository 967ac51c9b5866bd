import t from 'tap';
import { CLOSE } from '../src/connection/close-codes.js';
import { Heartbeat } from '../src/connection/heartbeat.js';

const limits = {
  maxFrameSize: 1_000,
  maxBuffered: 1_000,
  pingInterval: 20_000,
  stallTimeout: 30_000,
  maxAge: 3_600_000,
};
const MINUTE = 60_000;

/** Ticks once a second, and collects what is decided. */
function run(seconds: number, progress: (second: number) => 'idle' | 'reading' | 'stalled', hears: (second: number) => boolean) {
  const heartbeat = new Heartbeat(limits, 0);
  const decided: [number, unknown][] = [];
  for (let second = 1; second <= seconds; second++) {
    if (hears(second)) heartbeat.heard(second * 1_000);
    const pulse = heartbeat.tick(second * 1_000, progress(second), true);
    if (pulse !== undefined) decided.push([second, pulse]);
    if (pulse !== undefined && pulse !== 'ping') break;
  }
  return decided;
}

t.test('a client that answers is pinged at the interval', async (t) => {
  const decided = run(
    65,
    () => 'idle',
    () => true,
  );
  t.same(decided, [
    [20, 'ping'],
    [40, 'ping'],
    [60, 'ping'],
  ]);
});

t.test('a client that is silent is disconnected 5 s after the second ping', async (t) => {
  const decided = run(
    100,
    () => 'idle',
    () => false,
  );
  t.same(decided.at(-1), [45, 'terminate']);
});

t.test('R-012 a reader that stalls is closed after the stall timeout, and pings do not postpone it', async (t) => {
  const decided = run(
    100,
    (second) => (second > 5 ? 'stalled' : 'idle'),
    () => false,
  );
  t.same(decided.at(-1), [35, CLOSE.slowConsumer]);
});

t.test('a slow reader that reads counts as alive, although its pongs are late', async (t) => {
  const decided = run(
    200,
    (second) => (second % 20 === 0 ? 'reading' : 'stalled'),
    () => false,
  );
  t.ok(decided.every(([, pulse]) => pulse === 'ping'));
});

t.test('age and idleness close a connection only while nothing is in flight', async (t) => {
  const old = new Heartbeat(limits, 0);
  old.heard(60 * MINUTE);
  t.ok(old.isTooOld(60 * MINUTE));
  t.equal(old.tick(60 * MINUTE, 'idle', true), 'ping');
  t.equal(old.tick(60 * MINUTE + 1, 'idle', false), CLOSE.maxAge);
  const idle = new Heartbeat(limits, 0);
  idle.used(5 * MINUTE);
  idle.heard(34 * MINUTE);
  t.equal(idle.tick(34 * MINUTE, 'idle', false), 'ping');
  idle.heard(35 * MINUTE);
  t.equal(idle.tick(35 * MINUTE, 'idle', false), CLOSE.idle);
});
