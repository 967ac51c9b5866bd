import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { writeAtomically } from '../src/files/atomic-write.js';
import { withFileLock } from '../src/files/file-lock.js';
import { fileSignature, parseTokens, readTokens } from '../src/files/token-file.js';
import { fileOf, record } from './token-fixtures.js';

t.test('writes a file that only its owner can read', async (t) => {
  const path = join(t.testdir({}), 'new/folder/tokens.json');
  t.same(await readTokens(path), [], 'a missing file means no tokens');
  await writeAtomically(path, fileOf(record({ agents: ['billing'], expiresAt: '2027-01-01T00:00:00.000Z' })));
  t.match(await readTokens(path), [record({ agents: ['billing'] })]);
  t.equal(statSync(path).mode & 0o777, 0o600);
  t.equal(statSync(join(path, '..')).mode & 0o777, 0o700);
  const before = await fileSignature(path);
  t.equal(await fileSignature(path), before);
  await writeAtomically(path, fileOf(record({ agents: ['billing'], expiresAt: '2027-01-01T00:00:00.000Z' })));
  t.not(await fileSignature(path), before, 'a new file with the same text counts as a change');
  t.same(readdirSync(join(path, '..')), ['tokens.json'], 'no temporary file is left');
});

t.test('a failed write leaves the old file and no temporary one', async (t) => {
  const folder = t.testdir({});
  const path = join(folder, 'tokens.json');
  mkdirSync(path);
  await t.rejects(writeAtomically(path, 'new'), { code: 'EISDIR' });
  t.same(readdirSync(folder), ['tokens.json']);
});

t.test('a file written by root gets the owner of the old file or its folder', { skip: process.getuid?.() !== 0 }, async (t) => {
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
  await withFileLock(path, async () => {});
  t.match(statSync(`${path}.lock`), { uid: 12, gid: 34 }, 'the server can take the lock, too');
});

t.test('refuses a file that is accessible to other users', async (t) => {
  const path = join(t.testdir({ 'tokens.json': fileOf() }), 'tokens.json');
  for (const mode of [0o644, 0o640, 0o602, 0o601]) {
    chmodSync(path, mode);
    await t.rejects(readTokens(path), {
      message: `the tokens file ${path} is accessible to other users (mode ${mode.toString(8)}): run chmod 600 ${path}`,
    });
  }
});

t.test('names the cause if the file cannot be read', async (t) => {
  const path = t.testdir({});
  chmodSync(path, 0o700);
  await t.rejects(readTokens(path), {
    message: /cannot be read \(EISDIR\): the file and its folder must belong to the user that runs the server/,
  });
});

t.test('S-19 refuses a file with any invalid record and names the record', async (t) => {
  const list = (text: string) => `{"version":1,"tokens":[${text}]}`;
  const plain = JSON.stringify(record());
  const withField = (name: string, value: unknown) =>
    list(`${plain.slice(0, -1)},${JSON.stringify(name)}:${JSON.stringify(value)}}`);
  for (const [text, message] of [
    ['', 'it is not JSON'],
    ['{"version":1,"tok', 'it is not JSON'],
    ['null', 'it has no "tokens"'],
    ['[]', 'it has no "tokens"'],
    ['{"__proto__":{"version":1,"tokens":[]}}', 'it has no "tokens"'],
    ['{"tokens":[]}', 'it is not a list of tokens of version 1'],
    ['{"version":1,"tokens":{}}', 'it is not a list of tokens of version 1'],
    [list('null'), 'tokens[0] is not an object'],
    [list(`${plain},[]`), 'tokens[1] is not an object'],
    [list('{}'), 'tokens[0] has no field "id"'],
    [withField('__proto__', { scopes: ['admin'] }), 'tokens[0] has an unknown field "__proto__"'],
    [withField('constructor', {}), 'tokens[0] has an unknown field "constructor"'],
    [withField('budget', 3), 'tokens[0] has an unknown field "budget"'],
    [withField('expiresAt', 'never'), 'tokens[0] has an invalid field "expiresAt"'],
    [withField('expiresAt', '2027-02-30T00:00:00Z'), 'tokens[0] has an invalid field "expiresAt"'],
    [withField('expiresAt', null), 'tokens[0] has an invalid field "expiresAt"'],
    [withField('agents', []), 'tokens[0] has an invalid field "agents"'],
    [withField('agents', 'billing'), 'tokens[0] has an invalid field "agents"'],
    [withField('runningTurns', 0), 'tokens[0] has an invalid field "runningTurns"'],
    [withField('scopes', ['root']), 'tokens[0] has an invalid field "scopes"'],
    [withField('id', '../../etc/passwd'), 'tokens[0] has an invalid field "id"'],
    [withField('sha256', 'ab'), 'tokens[0] has an invalid field "sha256"'],
    [list(`${plain},${plain}`), 'tokens[1] is a duplicate'],
  ] as const) {
    t.throws(() => parseTokens('t.json', text), {
      message: `the tokens file t.json is damaged: ${message}. Restore a backup, or repair it by hand`,
    });
  }
  t.equal(({} as { scopes?: unknown }).scopes, undefined);
  t.throws(() => parseTokens('t.json', '{"version":2,"tokens":[]}'), {
    message: /was written by a newer version of @plugboard\/auth-bearer/,
  });
});

t.test('serializes concurrent commands', async (t) => {
  const path = join(t.testdir({}), 'data/tokens.json');
  const seen: string[] = [];
  await withFileLock(path, async () => {
    seen.push('first');
    await t.rejects(
      withFileLock(path, async () => seen.push('second'), 1),
      {
        name: 'CommandError',
        message: /^cannot lock .*tokens\.json \(database is locked\): another command is using it, or /,
      },
    );
  });
  await withFileLock(path, async () => seen.push('third'));
  await t.rejects(
    withFileLock(path, () => Promise.reject(new Error('broke'))),
    { message: 'broke' },
  );
  await withFileLock(path, async () => seen.push('fourth'));
  t.same(seen, ['first', 'third', 'fourth'], 'the lock is always released');
});

t.test('reports a folder that cannot be created', async (t) => {
  const folder = t.testdir({ file: '' });
  await t.rejects(
    withFileLock(join(folder, 'file/tokens.json'), async () => undefined),
    {
      name: 'CommandError',
      message: /^cannot lock .*tokens\.json \(.+\): another command is using it, or it belongs to another user/,
    },
  );
});
