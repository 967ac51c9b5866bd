import { execFile } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';

const REPORTER = join(import.meta.dirname, '../dist/reporter.js');

t.test('a run without tests fails, as one with a failed test does', async (t) => {
  const cwd = t.testdir({
    'good.test.mjs': "import { test } from 'node:test'; test('one', () => {});",
    'bad.test.mjs': "import { test } from 'node:test'; test('two', () => { throw new Error('no'); });",
    'empty.test.mjs': '',
  });
  const run = (pattern: string) =>
    new Promise<{ readonly failed: boolean; readonly stdout: string }>((resolve) => {
      const args = ['--test', `--test-reporter=${REPORTER}`, pattern];
      // Without the variable by which node:test knows that it runs inside another run.
      const { NODE_TEST_CONTEXT, NODE_OPTIONS, ...env } = process.env;
      execFile(process.execPath, args, { cwd, env }, (error, stdout) => resolve({ failed: error !== null, stdout }));
    });
  const none = /\nNo test was run: no file matches, or no file declares a test\.\n$/;
  const [all, good, bad, empty, missing] = await Promise.all(
    ['{good,empty}', 'good', 'bad', 'empty', 'none'].map((name) => run(`${name}.test.mjs`)),
  );
  t.match(all, { failed: false, stdout: /one(.|\n)*pass 2/ });
  t.match(good, { failed: false, stdout: /one(.|\n)*pass 1/ });
  t.match(bad, { failed: true, stdout: /two(.|\n)*fail 1/ });
  t.notMatch(bad?.stdout, none);
  t.match(empty, { failed: true, stdout: none });
  t.match(missing, { failed: true });
});
