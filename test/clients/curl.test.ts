import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { saying, TestServer } from '../support/test-server.js';
import { readTreasure, toolFixtures, WITH_TOOLS } from '../support/with-tools.js';

/**
 * The transcript that is on file. With `UPDATE_FIXTURES=1` in the environment it is replaced by
 * what there is now.
 */
function golden(name: string, now: string): string {
  const path = join(import.meta.dirname, '../fixtures', name);
  if (process.env.UPDATE_FIXTURES) writeFileSync(path, now);
  return readFileSync(path, 'utf8');
}

/**
 * What `curl -N -i` shows of a chat request, to the letter but for ids, the date, and the line ends
 * of the head.
 */
async function transcript(server: TestServer, body: object): Promise<string> {
  const args = [
    '-sS',
    '-N',
    '-i',
    `${server.url}/v1/chat/completions`,
    '-H',
    'content-type: application/json',
    '-d',
    JSON.stringify(body),
  ];
  const { stdout } = await promisify(execFile)('curl', args);
  return stdout
    .replaceAll('\r\n', '\n')
    .replace(/^date: .*$/im, 'Date: (now)')
    .replace(/req_[0-9a-f]{32}/, 'req_(id)')
    .replaceAll(/chatcmpl-[0-9A-Za-z]{29}/g, 'chatcmpl-(id)')
    .replaceAll(/fp_[0-9a-f]{12}/g, 'fp_(hash)');
}

t.test('C-183 the output of curl for a stream equals the golden file', async (t) => {
  const server = await TestServer.start(t, WITH_TOOLS, { ...toolFixtures, clock: new ManualClock() });
  server.models.enqueue(
    { text: 'Let me look.', toolCalls: [readTreasure], usage: { promptTokens: 30, completionTokens: 9 } },
    { text: ['Under ', 'the "oak" 🌳', '\n'], usage: { promptTokens: 50, completionTokens: 5 } },
  );
  const asked = saying('Where is the treasure?', { stream: true, stream_options: { include_usage: true } });
  const shown = await transcript(server, asked);
  t.equal(shown, golden('curl-stream.txt', shown));
});

t.test('C-183 the output of curl for a failing stream equals the golden file', async (t) => {
  const server = await TestServer.start(t, WITH_TOOLS, { ...toolFixtures, clock: new ManualClock() });
  server.models.enqueue({ text: ['Under ', 'the'], cut: { afterEvents: 2 } });
  const shown = await transcript(server, saying('Where is the treasure?', { stream: true }));
  t.equal(shown, golden('curl-failure.txt', shown));
});
