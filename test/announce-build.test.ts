import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';

const root = resolve(import.meta.dirname, '..');

t.test('npm start in a fresh clone says that it builds first', async (t) => {
  const { prestart } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts;
  t.equal(prestart, 'node tools/announce-build.mjs && npm run --silent build');
  const script = readFileSync(join(root, 'tools/announce-build.mjs'), 'utf8');
  const clone = t.testdir({ kernel: {}, tools: { 'announce-build.mjs': script } });
  const announced = () => execFileSync(process.execPath, ['tools/announce-build.mjs'], { cwd: clone, encoding: 'utf8' });
  t.equal(announced(), 'building, this takes about 30 s the first time\n');
  mkdirSync(join(clone, 'kernel/dist'));
  t.equal(announced(), '', 'later builds take a moment');
});
