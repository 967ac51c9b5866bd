import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CapturedLog, eventually, ManualClock } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { writeAtomically } from '../src/files/atomic-write.js';
import { IssuedTokens } from '../src/provider/issued-tokens.js';
import { FileStorage } from '../src/storage/file-storage.js';
import { digestOf } from '../src/tokens/digest.js';
import { fileOf, record, TOKEN } from './token-fixtures.js';

const DIGEST = digestOf(TOKEN);
const SECOND = { id: 'tok_0000000000000002', name: 'second', sha256: digestOf('second') };

/** Starts IssuedTokens over a file with this text, or over no file. */
async function started(t: Test, text?: string) {
  const path = join(t.testdir({}), 'tokens.json');
  if (text !== undefined) await writeAtomically(path, text);
  const clock = new ManualClock();
  const log = new CapturedLog();
  const ctx = { entries: () => ['acme'], clock, log: log.logger(clock) };
  const tokens = new IssuedTokens(ctx, { current: new FileStorage(path, clock), unusedFile: async () => undefined });
  t.teardown(() => tokens.stop());
  await tokens.start();
  return {
    tokens,
    path,
    clock,
    log,
    write: (text: string) => writeAtomically(path, text),
    /** Lets two seconds pass and waits for the check they trigger. */
    async check() {
      const { pending } = clock;
      clock.advance(2_000);
      await eventually(() => clock.pending >= pending);
    },
    known: (digest = DIGEST) => tokens.find(digest)?.result,
    audited: () => log.lines.filter((line) => line.log === 'audit').map(({ event, token_id, by }) => [event, token_id, by]),
  };
}

t.test('S-12 notices a change of the file within two seconds', async (t) => {
  const { known, write, check } = await started(t);
  t.equal(known(), undefined);
  await write(fileOf(record()));
  await check();
  t.match(known(), { principal: { tokenId: 'tok_0000000000000001' } });
  await write(fileOf(record({ revokedAt: '2026-01-01T00:00:00.000Z' })));
  await check();
  t.match(known(), { refused: /is revoked/ });
});

t.test('reads the file at once on reload', async (t) => {
  const { known, write, tokens } = await started(t, fileOf());
  await write(fileOf(record()));
  await tokens.reload();
  t.match(known(), { principal: {} });
});

t.test('does not read an unchanged file again', async (t) => {
  const { tokens, check } = await started(t, fileOf(record()));
  const first = tokens.find(DIGEST);
  await check();
  await check();
  t.equal(tokens.find(DIGEST), first, 'the same object');
  await tokens.reload();
  t.not(tokens.find(DIGEST), first, 'unless reload is called');
});

t.test('audits changes of tokens, but not the tokens found at start', async (t) => {
  const { write, check, audited } = await started(t, fileOf(record()));
  t.same(audited(), []);
  await write(fileOf(record(), record(SECOND)));
  await check();
  await write(fileOf(record({ revokedAt: '2026-01-02T00:00:00.000Z', revokedBy: 'alice' }), record(SECOND)));
  await check();
  const third = { id: 'tok_0000000000000003', sha256: digestOf('third'), replaces: SECOND.id };
  await write(fileOf(record({ ...third, revokedAt: '2026-01-02T00:00:00.000Z' })));
  await check();
  t.same(audited(), [
    ['token_created', SECOND.id, 'ops'],
    ['token_revoked', 'tok_0000000000000001', 'alice'],
    ['token_rotated', third.id, 'ops'],
    ['token_revoked', third.id, undefined],
    ['token_revoked', SECOND.id, undefined],
  ]);
});

t.test('fails to start with an unusable file', async (t) => {
  await t.rejects(started(t, '{'), { name: 'TokensUnusable', message: /is damaged: it is not JSON/ });
});

t.test('keeps the last good list and logs one error while the file is unusable', async (t) => {
  const revoked = record({ revokedAt: '2026-01-01T00:00:00.000Z' });
  const { known, write, check, log, path, tokens } = await started(t, fileOf(revoked, record(SECOND)));
  await write('{');
  await check();
  await write('[');
  await check();
  t.match(known(), { refused: /is revoked/ }, 'a revocation stays in effect');
  t.match(known(SECOND.sha256), { principal: {} });
  t.match(log.lines, [{ level: 'error', err: { message: /is damaged/ }, msg: /the last good list stays in effect/ }]);
  await t.rejects(tokens.reload(), { message: /is damaged/ });

  await write(fileOf(revoked));
  chmodSync(path, 0o604);
  await check();
  t.match(known(SECOND.sha256), { principal: {} });
  t.equal(log.lines.length, 1);
  chmodSync(path, 0o600);
  await check();
  t.equal(known(SECOND.sha256), undefined, 'a change of permissions counts as a change');
  t.match(log.lines.at(-1), { level: 'info', msg: 'the tokens file can be used again' });
  await write('{');
  await check();
  t.match(log.lines.at(-1), { level: 'error' }, 'a later problem is logged again');
});

t.test('removes the tokens when the file is removed', async (t) => {
  const { known, check, path, audited } = await started(t, fileOf(record()));
  rmSync(path);
  await check();
  t.equal(known(), undefined);
  t.same(audited(), [['token_revoked', 'tok_0000000000000001', undefined]]);
});

t.test('checks nothing after it was stopped', async (t) => {
  const { tokens, clock, write, known } = await started(t);
  clock.advance(2_000);
  await tokens.stop();
  t.equal(clock.pending, 0);
  await write(fileOf(record()));
  clock.advance(10_000);
  t.equal(known(), undefined);
});
