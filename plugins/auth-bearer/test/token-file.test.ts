import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { writeAtomically } from '../src/atomic-write.js';
import { withLock } from '../src/lock.js';
import { parseTokens, readTokens, signatureOf } from '../src/token-file.js';
import { fileOf, record } from './issued.js';

t.test('what was written is read again, and nobody else may read it', async (t) => {
  const path = join(t.testdir({}), 'new/folder/tokens.json');
  t.same(await readTokens(path), [], 'no file is no tokens');
  await writeAtomically(path, fileOf(record({ agents: ['billing'], expiresAt: '2027-01-01T00:00:00.000Z' })));
  t.match(await readTokens(path), [record({ agents: ['billing'] })]);
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.equal(statSync(join(path, '..')).mode & 0o777, 0o700);
  const before = await signatureOf(path);
  t.equal(await signatureOf(path), before);
  await writeAtomically(path, fileOf(record({ agents: ['billing'], expiresAt: '2027-01-01T00:00:00.000Z' })));
  t.not(await signatureOf(path), before, 'the same text in another file is a change');
  t.same(readdirSync(join(path, '..')), ['tokens.json'], 'nothing is left behind');
});

t.test('what cannot be written leaves the old file, and nothing behind', async (t) => {
  const folder = t.testdir({});
  const path = join(folder, 'tokens.json');
  mkdirSync(path);
  await t.rejects(writeAtomically(path, 'new'), { code: 'EISDIR' });
  t.same(readdirSync(folder), ['tokens.json']);
});

t.test(
  'written by root, a file belongs to whom the old one or its folder belonged to',
  { skip: process.getuid?.() !== 0 },
  async (t) => {
    const { chownSync } = await import('node:fs');
    const folder = t.testdir({});
    const path = join(folder, 'tokens.json');
    chownSync(folder, 12, 34);
    await writeAtomically(path, 'new');
    t.match(statSync(path), { uid: 12, gid: 34 });
    chownSync(path, 56, 78);
    await writeAtomically(path, 'newer');
    t.match(statSync(path), { uid: 56, gid: 78 });
    t.equal(readFileSync(path, 'utf8'), 'newer');
  },
);

t.test('a file that others may read or write is refused, with the cure', async (t) => {
  const path = join(t.testdir({ 'tokens.json': fileOf() }), 'tokens.json');
  for (const mode of [0o644, 0o640, 0o602, 0o601]) {
    chmodSync(path, mode);
    await t.rejects(readTokens(path), {
      message: `the tokens file ${path} is open to other users (mode ${mode.toString(8)}); run: chmod 600 ${path}`,
    });
  }
});

t.test('a file that cannot be read says whose it should be', async (t) => {
  const path = t.testdir({});
  chmodSync(path, 0o700);
  await t.rejects(readTokens(path), { message: /cannot be read \(EISDIR\); it must belong to the user that the server runs as/ });
});

t.test('S-19 a file that is not wholly as it should be is refused, and says where', async (t) => {
  const list = (text: string) => `{"version":1,"tokens":[${text}]}`;
  const plain = JSON.stringify(record());
  const withField = (name: string, value: unknown) =>
    list(`${plain.slice(0, -1)},${JSON.stringify(name)}:${JSON.stringify(value)}}`);
  for (const [text, message] of [
    ['', 'it is no JSON'],
    ['{"version":1,"tok', 'it is no JSON'],
    ['null', 'it has no "tokens"'],
    ['[]', 'it has no "tokens"'],
    ['{"__proto__":{"version":1,"tokens":[]}}', 'it has no "tokens"'],
    ['{"tokens":[]}', 'it is no list of tokens of version 1'],
    ['{"version":1,"tokens":{}}', 'it is no list of tokens of version 1'],
    [list('null'), 'tokens[0] is no object'],
    [list(`${plain},[]`), 'tokens[1] is no object'],
    [list('{}'), 'tokens[0] has no field "id"'],
    [withField('__proto__', { scopes: ['admin'] }), 'tokens[0] has an unknown field "__proto__"'],
    [withField('constructor', {}), 'tokens[0] has an unknown field "constructor"'],
    [withField('budget', 3), 'tokens[0] has an unknown field "budget"'],
    [withField('expiresAt', 'never'), 'tokens[0] has a field "expiresAt" that cannot be right'],
    [withField('expiresAt', null), 'tokens[0] has a field "expiresAt" that cannot be right'],
    [withField('agents', []), 'tokens[0] has a field "agents" that cannot be right'],
    [withField('agents', 'billing'), 'tokens[0] has a field "agents" that cannot be right'],
    [withField('runningTurns', 0), 'tokens[0] has a field "runningTurns" that cannot be right'],
    [withField('scopes', ['root']), 'tokens[0] has a field "scopes" that cannot be right'],
    [withField('id', '../../etc/passwd'), 'tokens[0] has a field "id" that cannot be right'],
    [withField('sha256', 'ab'), 'tokens[0] has a field "sha256" that cannot be right'],
    [list(`${plain},${plain}`), 'tokens[1] is there twice'],
  ] as const) {
    t.throws(() => parseTokens('t.json', text), {
      message: `the tokens file t.json is damaged: ${message}; restore it from a copy, or mend it by hand`,
    });
  }
  t.equal(({} as { scopes?: unknown }).scopes, undefined);
  t.throws(() => parseTokens('t.json', '{"version":2,"tokens":[]}'), {
    message: /was written by a newer version of @plugboard\/auth-bearer/,
  });
});

t.test('two commands at once come one after the other', async (t) => {
  const path = join(t.testdir({}), 'data/tokens.json');
  const seen: string[] = [];
  await withLock(path, async () => {
    seen.push('first');
    await t.rejects(
      withLock(path, async () => seen.push('second'), 1),
      {
        name: 'CommandError',
        message: /^cannot lock .*tokens\.json \(database is locked\): another command is at it, or /,
      },
    );
  });
  await withLock(path, async () => seen.push('third'));
  await t.rejects(
    withLock(path, () => Promise.reject(new Error('broke'))),
    { message: 'broke' },
  );
  await withLock(path, async () => seen.push('fourth'));
  t.same(seen, ['first', 'third', 'fourth'], 'the lock is let go of in any case');
});

t.test('a folder that cannot be made is told of', async (t) => {
  const folder = t.testdir({ file: '' });
  await t.rejects(
    withLock(join(folder, 'file/tokens.json'), async () => undefined),
    {
      name: 'CommandError',
      message: /^cannot lock .*tokens\.json \(.+\): another command is at it, or this is not the user that the server runs as$/,
    },
  );
});
