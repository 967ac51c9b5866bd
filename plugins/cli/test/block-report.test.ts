import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beginCall } from '@plugboard/kernel/internal';
import t from 'tap';
import { reportBlocking } from '../src/diagnosis/block-report.js';

t.test('R-051 a plugin that blocks the process is named by another thread', (t) => {
  const path = join(t.testdir({ report: '' }), 'report');
  const file = openSync(path, 'a');
  const end = reportBlocking(20, file);
  beginCall({ text: 'the import of /http.js', path: '/http.js', packageName: '@plugboard/transport-http' });
  const ended = beginCall({ text: 'the import of /odd.js', path: '/odd.js', packageName: 'odd' });
  while (readFileSync(path, 'utf8') === ''); // blocks
  ended();
  end();
  closeSync(file);
  t.equal(
    readFileSync(path, 'utf8'),
    'plugboard: blocked for 0.02 s in the import of /odd.js; its code does not return, perhaps an endless loop\n',
  );
  t.end();
});

t.test('no thread is started for the plugins of this project', (t) => {
  const threads: unknown[] = [];
  process.on('worker', (thread) => threads.push(thread));
  const end = reportBlocking();
  const call = { text: 'start() of transports.http', path: '/http.js' };
  beginCall({ ...call, packageName: '@plugboard/transport-http' })();
  setImmediate(() => {
    t.equal(threads.length, 0);
    beginCall({ ...call, packageName: undefined })();
    setImmediate(() => {
      t.equal(threads.length, 1);
      end();
      t.end();
    });
  });
});
