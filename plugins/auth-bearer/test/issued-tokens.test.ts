import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CapturedLog, ManualClock } from '@plugboard/kernel/testing';
import t, { type Test } from 'tap';
import { writeAtomically } from '../src/atomic-write.js';
import { digestOf } from '../src/digest.js';
import { IssuedTokens } from '../src/issued-tokens.js';
import { fileOf, record, TOKEN } from './issued.js';

const DIGEST = digestOf(TOKEN);
const SECOND = { id: 'tok_0000000000000002', name: 'second', sha256: digestOf('second') };

/** The issued tokens of a file with this text, none where it is absent, as a server has them. */
async function started(t: Test, text?: string) {
  const path = join(t.testdir({}), 'tokens.json');
  if (text !== undefined) await writeAtomically(path, text);
  const clock = new ManualClock();
  const log = new CapturedLog();
  const tokens = new IssuedTokens({ path, projects: new Set(['default', 'acme']), clock, log: log.logger(clock) });
  t.teardown(() => tokens.stop());
  await tokens.start();
  return {
    tokens,
    path,
    clock,
    log,
    write: (text: string) => writeAtomically(path, text),
    /** Lets two seconds pass, and what they set off happen. */
    async look() {
      const { pending } = clock;
      clock.advance(2_000);
      while (clock.pending < pending) await new Promise(setImmediate);
    },
    known: (digest = DIGEST) => tokens.find(digest)?.answer,
    audited: () => log.lines.filter((line) => line.log === 'audit').map(({ event, token_id, by }) => [event, token_id, by]),
  };
}

t.test('S-12 what changes in the file is known within two seconds', async (t) => {
  const { known, write, look } = await started(t);
  t.equal(known(), undefined);
  await write(fileOf(record()));
  await look();
  t.match(known(), { principal: { tokenId: 'tok_0000000000000001' } });
  await write(fileOf(record({ revokedAt: '2026-01-01T00:00:00.000Z' })));
  await look();
  t.match(known(), { refused: /is revoked/ });
});

t.test('it is known at once after a reload', async (t) => {
  const { known, write, tokens } = await started(t, fileOf());
  await write(fileOf(record()));
  await tokens.reload();
  t.match(known(), { principal: {} });
});

t.test('a file that has not changed is not read again', async (t) => {
  const { tokens, look } = await started(t, fileOf(record()));
  const first = tokens.find(DIGEST);
  await look();
  await look();
  t.equal(tokens.find(DIGEST), first, 'the very same object');
  await tokens.reload();
  t.not(tokens.find(DIGEST), first, 'unless that is asked for');
});

t.test('what became of tokens is audited, but not what was there at the start', async (t) => {
  const { write, look, audited } = await started(t, fileOf(record()));
  t.same(audited(), []);
  await write(fileOf(record(), record(SECOND)));
  await look();
  await write(fileOf(record({ revokedAt: '2026-01-02T00:00:00.000Z', revokedBy: 'alice' }), record(SECOND)));
  await look();
  const third = { id: 'tok_0000000000000003', sha256: digestOf('third'), replaces: SECOND.id };
  await write(fileOf(record({ ...third, revokedAt: '2026-01-02T00:00:00.000Z' })));
  await look();
  t.same(audited(), [
    ['token_created', SECOND.id, 'ops'],
    ['token_revoked', 'tok_0000000000000001', 'alice'],
    ['token_rotated', third.id, 'ops'],
    ['token_revoked', third.id, undefined],
    ['token_revoked', SECOND.id, undefined],
  ]);
});

t.test('a start with a file that cannot be used fails', async (t) => {
  await t.rejects(started(t, '{'), { name: 'TokenFileError', message: /is damaged: it is no JSON/ });
});

t.test(
  'a file that cannot be used any more leaves the last good list, with one error in the log until it is right again',
  async (t) => {
    const revoked = record({ revokedAt: '2026-01-01T00:00:00.000Z' });
    const { known, write, look, log, path, tokens } = await started(t, fileOf(revoked, record(SECOND)));
    await write('{');
    await look();
    await write('[');
    await look();
    t.match(known(), { refused: /is revoked/ }, 'a revocation that was seen stays');
    t.match(known(SECOND.sha256), { principal: {} });
    t.match(log.lines, [{ level: 'error', err: { message: /is damaged/ }, msg: /the tokens stay as they were last read/ }]);
    await t.rejects(tokens.reload(), { message: /is damaged/ });

    await write(fileOf(revoked));
    chmodSync(path, 0o604);
    await look();
    t.match(known(SECOND.sha256), { principal: {} });
    t.equal(log.lines.length, 1);
    chmodSync(path, 0o600);
    await look();
    t.equal(known(SECOND.sha256), undefined, 'a change of permissions is a change');
    t.match(log.lines.at(-1), { level: 'info', msg: 'the tokens file can be used again' });
    await write('{');
    await look();
    t.match(log.lines.at(-1), { level: 'error' }, 'the next time it is told of again');
  },
);

t.test('a file that is taken away takes the tokens with it', async (t) => {
  const { known, look, path, audited } = await started(t, fileOf(record()));
  rmSync(path);
  await look();
  t.equal(known(), undefined);
  t.same(audited(), [['token_revoked', 'tok_0000000000000001', undefined]]);
});

t.test('after the stop nobody looks any more', async (t) => {
  const { tokens, clock, write, known } = await started(t);
  clock.advance(2_000);
  await tokens.stop();
  t.equal(clock.pending, 0);
  await write(fileOf(record()));
  clock.advance(10_000);
  t.equal(known(), undefined);
});
