import fs, { existsSync, readFileSync, renameSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { audit } from '@plugboard/kernel';
import { CapturedLog } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { compose } from '../../../src/host/compose.js';
import { LogWriter } from '../../../src/host/log/log-writer.js';

import { bare } from '../distribution.js';

/** A line that is written without delay. */
const line = (text: string) => `{"level":"warn","msg":"${text}"}\n`;

/** A writer to `audit.log` in a new folder. */
function fileWriter(t: Test) {
  const folder = t.testdir({});
  const [path, renamed] = [join(folder, 'audit.log'), join(folder, 'audit.log.1')];
  const writer = new LogWriter({ to: path, limit: 65_536 });
  t.teardown(() => writer.end());
  return { writer, path, rotate: () => renameSync(path, renamed), contents: () => [renamed, path].map(textOf) };
}

const textOf = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);

t.test('after a rotation lines go to the new file, even if a line is being written meanwhile', async (t) => {
  const { writer, rotate, contents } = fileWriter(t);
  writer.write(line('first'));
  await writer.written();
  writer.write(line('second')); // in progress until the next turn of the event loop
  rotate();
  writer.reopen();
  writer.write(line('third'));
  await writer.written();
  t.strictSame(contents(), [line('first') + line('second'), line('third')]);
});

t.test('a rotation without a line before or after it opens no file', async (t) => {
  const { writer, path, rotate, contents } = fileWriter(t);
  writer.reopen();
  await writer.written();
  t.notOk(existsSync(path));
  writer.write(line('first'));
  await writer.written();
  writer.write(line('second'));
  await writer.written();
  rotate();
  writer.reopen();
  await writer.written();
  t.strictSame(contents(), [line('first') + line('second'), undefined]);
});

t.test('a server whose audit file cannot be closed reloads and stops', async (t) => {
  const path = join(t.testdir({}), 'audit.log');
  const config = { transports: {}, log: { audit: path } };
  const server = await compose({ config, layout: bare, logTo: new CapturedLog() });
  await server.start();
  audit(server.log, 'test_event', {}, 'a line');
  while (!textOf(path)) await setTimeout(10);
  failToClose(t);
  t.match(await server.reload(config), { refused: undefined, failures: [] });
  t.strictSame(await server.stop(), []);
});

t.test('a server that has stopped has written its audit lines and closed the file', async (t) => {
  const path = join(t.testdir({}), 'audit.log');
  const listeners = process.listenerCount('exit');
  const server = await compose({ config: { transports: {}, log: { audit: path } }, layout: bare, logTo: new CapturedLog() });
  await server.start();
  audit(server.log, 'test_event', {}, 'a line');
  await server.stop();
  t.match(JSON.parse(readFileSync(path, 'utf8')), { log: 'audit', event: 'test_event' });
  t.equal(process.listenerCount('exit'), listeners);
});

/** Lets the system report an error for every file that is closed. */
function failToClose(t: Test): void {
  const { close, closeSync } = fs;
  const failure = Object.assign(new Error('EIO: i/o error, close'), { code: 'EIO' });
  const replaced: Partial<typeof fs> = {
    closeSync: () => {
      throw failure;
    },
    close: Object.assign((_fd: number, done: fs.NoParamCallback = () => {}) => setImmediate(done, failure), {
      __promisify__: close.__promisify__,
    }),
  };
  Object.assign(fs, replaced);
  syncBuiltinESMExports();
  t.teardown(() => {
    Object.assign(fs, { close, closeSync });
    syncBuiltinESMExports();
  });
}
