import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { FOLDER } from './entry.js';

const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json');
const SUITE = join(dirname(manifest), 'dist/index.js');
const CLIENT = `"${process.execPath}" "${join(FOLDER, 'fixtures/conformance-client.mjs')}"`;
/** Milliseconds for one scenario: all of them start at once. */
const LIMIT = 240_000;
t.setTimeout(3 * LIMIT);

for (const revision of ['2025-11-25', '2026-07-28']) {
  t.test(`MCP-17 the conformance suite of ${revision} passes, but for the failures that are meant`, async (t) => {
    const results = t.testdir({});
    const failures = join(FOLDER, 'conformance.yaml');
    const options = ['--requirements', revision, '--expected-failures', failures, '--timeout', `${LIMIT}`, '-o', results];
    const { PATH } = process.env;
    const suite = spawn(process.execPath, [SUITE, 'client', ...options, '--command', CLIENT], { cwd: results, env: { PATH } });
    const [output, , [code]] = await Promise.all([text(suite.stdout), text(suite.stderr), once(suite, 'close')]);
    const summary = output.slice(output.indexOf('=== SUITE SUMMARY'));
    t.comment(summary);
    t.equal(code, 0, summary);
  });
}
