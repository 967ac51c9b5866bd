import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CapturedLog, ManualClock } from '@plugboard/kernel/testing';
import t, { type Test } from 'tap';
import { LastUse, readUses } from '../src/last-use.js';

function server(t: Test, path = join(t.testdir({}), 'tokens.json.used')) {
  const clock = new ManualClock();
  const log = new CapturedLog();
  const lastUse = new LastUse(path, clock, log.logger(clock));
  return { lastUse, clock, log, path };
}

/** Waits until something is so that real files decide. */
async function until(check: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await check())) await new Promise(setImmediate);
}

t.test('when a token was last used is written down a minute later, once for all that came meanwhile', async (t) => {
  const { lastUse, clock, path } = server(t);
  await lastUse.start();
  t.equal(lastUse.note('tok_1'), true, 'the first use');
  clock.advance(30_000);
  t.equal(lastUse.note('tok_1'), false);
  t.equal(lastUse.note('tok_2'), true);
  t.equal((await readUses(path)).size, 0, 'nothing is written yet');
  clock.advance(30_000);
  await until(async () => (await readUses(path)).size === 2);
  t.same(JSON.parse(readFileSync(path, 'utf8')), { tok_1: '2026-01-01T00:00:30.000Z', tok_2: '2026-01-01T00:00:30.000Z' });
  t.equal(clock.pending, 0, 'a server that nobody asks writes nothing');
});

t.test('the stop writes what is not written yet, and the next start knows it', async (t) => {
  const { lastUse, path } = server(t);
  await lastUse.start();
  lastUse.note('tok_1');
  await lastUse.stop();
  await lastUse.stop();
  const next = server(t, path);
  await next.lastUse.start();
  t.equal(next.lastUse.note('tok_1'), false, 'this is not its first use');
});

t.test('two servers with the same file do not take the later use from each other', async (t) => {
  const one = server(t);
  const two = server(t, one.path);
  one.lastUse.note('tok_1');
  two.clock.advance(5_000);
  two.lastUse.note('tok_1');
  two.lastUse.note('tok_2');
  await two.lastUse.stop();
  await one.lastUse.stop();
  t.same(JSON.parse(readFileSync(one.path, 'utf8')), { tok_1: '2026-01-01T00:00:05.000Z', tok_2: '2026-01-01T00:00:05.000Z' });
});

t.test('a file that is damaged counts as empty', async (t) => {
  const folder = t.testdir({ a: '{', b: 'null', c: '{"tok_1":"yesterday","__proto__":"2026-01-01"}' });
  t.equal((await readUses(join(folder, 'a'))).size, 0);
  t.equal((await readUses(join(folder, 'b'))).size, 0);
  t.same([...(await readUses(join(folder, 'c'))).keys()], ['__proto__']);
});

t.test('where it cannot be written, one warning is logged, and nobody is kept waiting', async (t) => {
  const { lastUse, clock, log } = server(t, join(t.testdir({ file: '' }), 'file/used'));
  lastUse.note('tok_1');
  clock.advance(60_000);
  await until(() => log.lines.length > 0);
  lastUse.note('tok_1');
  await lastUse.stop();
  t.match(log.lines, [{ level: 'warn', msg: 'when tokens were last used cannot be written down' }]);
  t.equal(log.lines.length, 1);
});
