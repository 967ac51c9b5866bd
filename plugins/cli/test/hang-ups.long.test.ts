import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { HangUps } from '../src/running/hang-ups.js';

t.test('a terminal that is gone only seconds after the SIGHUP of its shell stops the server', async (t) => {
  let isOpen = true;
  const stopped = Promise.withResolvers<void>();
  let reloads = 0;
  const hangUps = new HangUps(() => isOpen);
  t.teardown(() => process.removeAllListeners('SIGHUP'));
  hangUps.handleWith({ reload: () => reloads++, stop: () => stopped.resolve() });
  const awake = setInterval(() => undefined, 1_000); // as a server is
  t.teardown(() => clearInterval(awake));
  process.emit('SIGHUP');
  await sleep(2_000);
  isOpen = false;
  await stopped.promise;
  t.equal(reloads, 1, 'a signal alone reloads');
});
