import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CapturedLog, eventually, ManualClock } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { readLastUses } from '../src/files/last-use.js';
import { LastUseRecorder } from '../src/provider/last-use-recorder.js';
import { FileStorage } from '../src/storage/file-storage.js';

function server(t: Test, path = join(t.testdir({}), 'tokens.json.used')) {
  const clock = new ManualClock();
  const log = new CapturedLog();
  const current = new FileStorage(path.replace(/\.used$/, ''), clock);
  const lastUse = new LastUseRecorder({ clock, log: log.logger(clock) }, { current });
  return { lastUse, clock, log, path };
}

t.test('writes the last uses of a minute once', async (t) => {
  const { lastUse, clock, path } = server(t);
  await lastUse.start();
  t.equal(lastUse.record('tok_1'), true, 'the first use');
  clock.advance(30_000);
  t.equal(lastUse.record('tok_1'), false);
  t.equal(lastUse.record('tok_2'), true);
  t.equal((await readLastUses(path)).size, 0, 'nothing is written yet');
  clock.advance(30_000);
  await eventually(async () => (await readLastUses(path)).size === 2);
  t.same(JSON.parse(readFileSync(path, 'utf8')), { tok_1: '2026-01-01T00:00:30.000Z', tok_2: '2026-01-01T00:00:30.000Z' });
  t.equal(clock.pending, 0, 'an idle server writes nothing');
});

t.test('writes pending uses at stop and reads them at the next start', async (t) => {
  const { lastUse, path } = server(t);
  await lastUse.start();
  lastUse.record('tok_1');
  await lastUse.stop();
  await lastUse.stop();
  const next = server(t, path);
  await next.lastUse.start();
  t.equal(next.lastUse.record('tok_1'), false, 'not its first use');
});

t.test('keeps the later use of two servers with the same file', async (t) => {
  const one = server(t);
  const two = server(t, one.path);
  one.lastUse.record('tok_1');
  two.clock.advance(5_000);
  two.lastUse.record('tok_1');
  two.lastUse.record('tok_2');
  await two.lastUse.stop();
  await one.lastUse.stop();
  t.same(JSON.parse(readFileSync(one.path, 'utf8')), { tok_1: '2026-01-01T00:00:05.000Z', tok_2: '2026-01-01T00:00:05.000Z' });
});

t.test('treats a damaged file as empty', async (t) => {
  const folder = t.testdir({ a: '{', b: 'null', c: '{"tok_1":"yesterday","__proto__":"2026-01-01"}' });
  t.equal((await readLastUses(join(folder, 'a'))).size, 0);
  t.equal((await readLastUses(join(folder, 'b'))).size, 0);
  t.same([...(await readLastUses(join(folder, 'c'))).keys()], ['__proto__']);
});

t.test('logs one warning if the file cannot be written', async (t) => {
  const { lastUse, clock, log } = server(t, join(t.testdir({ file: '' }), 'file/used'));
  lastUse.record('tok_1');
  clock.advance(60_000);
  await eventually(() => log.lines.length > 0);
  lastUse.record('tok_1');
  await lastUse.stop();
  t.match(log.lines, [{ level: 'warn', msg: 'could not write when tokens were last used; will retry' }]);
  t.equal(log.lines.length, 1);
});
