import { readdirSync } from 'node:fs';
import { mkdir, readdir, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { fileNameOf } from '../src/format/file-name.js';
import { RecordingFolder } from '../src/record/folder.js';

const NOW = Date.UTC(2026, 10, 28);
const nameOf = (minute: number) => fileNameOf({ at: NOW + minute * 60_000, id: `turn_${minute}` });
const UNLIMITED = { keep: 1000, maxBytes: 2 ** 30 };

t.test('the folder and its files are for their owner alone', async (t) => {
  const path = join(t.testdir(), 'data', 'recordings');
  await new RecordingFolder(path, UNLIMITED).write(nameOf(1), ['one\n', 'two\n']);
  t.equal((await stat(path)).mode & 0o777, 0o700);
  t.equal((await stat(join(path, nameOf(1)))).mode & 0o777, 0o600);
  t.equal((await stat(join(path, nameOf(1)))).size, 8);
});

t.test('the oldest files are deleted beyond the number and the size, also those of earlier processes', async (t) => {
  const path = t.testdir({ [nameOf(0)]: 'earlier', 'notes.txt': 'mine' });
  const folder = new RecordingFolder(path, { keep: 3, maxBytes: 25 });
  for (const minute of [1, 2, 3]) await folder.write(nameOf(minute), ['ten bytes\n']);
  await folder.prune(NOW);
  t.strictSame((await readdir(path)).sort(), [nameOf(2), nameOf(3), 'notes.txt'], 'three are enough, but 30 bytes are too many');
  await folder.write(nameOf(4), ['x'.repeat(100)]);
  await folder.prune(NOW);
  t.strictSame(await readdir(path), ['notes.txt'], 'a file that is too large alone');
});

t.test('two servers on one folder keep its limits together, and do not stumble over each other', async (t) => {
  const path = t.testdir();
  const limits = { keep: 5, maxBytes: 2 ** 20 };
  const folders = [new RecordingFolder(path, limits), new RecordingFolder(path, limits)];
  await Promise.all(
    folders.map(async (folder, server) => {
      for (let minute = 0; minute < 30; minute++) {
        await folder.write(nameOf(2 * minute + server), ['line\n']);
        await folder.prune(NOW);
      }
    }),
  );
  await folders[0]?.prune(NOW);
  t.strictSame((await readdir(path)).sort(), [55, 56, 57, 58, 59].map(nameOf));
});

t.test('a file that is being written has another name, and one that a dead process left is deleted', async (t) => {
  const path = t.testdir();
  const folder = new RecordingFolder(path, UNLIMITED);
  let seen: readonly string[] = [];
  await folder.write(
    nameOf(1),
    (function* () {
      yield 'one\n';
      seen = readdirSync(path);
      yield 'two\n';
    })(),
  );
  t.match(seen, [/^\.\S+\.tmp$/]);
  const left = `.${nameOf(2)}.0123456789ab.tmp`;
  const fresh = `.${nameOf(3)}.0123456789ab.tmp`;
  for (const name of [left, fresh]) await writeFile(join(path, name), 'half');
  await utimes(join(path, left), NOW / 1000 - 7200, NOW / 1000 - 7200);
  await utimes(join(path, fresh), NOW / 1000, NOW / 1000);
  await folder.prune(NOW);
  t.strictSame((await readdir(path)).sort(), [fresh, nameOf(1)].sort());
});

t.test('a write that fails leaves nothing behind', async (t) => {
  const path = t.testdir();
  const folder = new RecordingFolder(path, UNLIMITED);
  const broken = (function* () {
    yield 'one\n';
    throw new Error('ENOSPC: no space left on device');
  })();
  await t.rejects(folder.write(nameOf(1), broken), { message: /ENOSPC/ });
  t.strictSame(await readdir(path), []);
  await mkdir(join(path, nameOf(2)));
  await t.rejects(folder.write(nameOf(2), ['one\n']), { code: 'EISDIR' });
  t.strictSame(await readdir(path), [nameOf(2)]);
});
