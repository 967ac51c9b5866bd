import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { createLogger, type LogSink } from '../../../src/host/log/log.js';
import { readable } from '../../../src/host/log/log-readable.js';
import type { CredentialShapes } from '../../../src/host/log/redactor.js';

const CREDENTIALS: readonly CredentialShapes[] = [
  { fields: ['apiKey', 'api_key', 'password', 'token'] },
  { patterns: [/svc[pae]_[0-9A-Za-z]{38}/] },
  { patterns: [/sk-[A-Za-z0-9_-]{20,}/], fields: ['authorization', 'cookie'] },
];

/** What a logger writes, as text. */
function written(secrets: readonly string[] = [], level = 'info') {
  const lines: string[] = [];
  const sink: LogSink = { write: (line) => lines.push(line) };
  const clock = new ManualClock(Date.UTC(2026, 10, 21, 14, 5, 9));
  return { lines, log: createLogger({ level, secrets, credentials: CREDENTIALS, clock, sink }).log };
}

const token = `svcp_${'a1B2'.repeat(9)}xy`;
const key = 'sk-proj-0123456789_abcdefghij';

t.test('a line is JSON with the common fields', async (t) => {
  const { log, lines } = written();
  log.child({ plugin: '@plugboard/tool-clock' }).info({ n: 1 }, 'returned the time');
  log.debug('not at this level');
  t.equal(lines.length, 1);
  t.ok(lines[0]?.endsWith('\n'));
  t.match(JSON.parse(lines[0] ?? ''), {
    level: 'info',
    time: '2026-11-21T14:05:09.000Z',
    service: 'plugboard',
    version: /^\d+\.\d+\.\d+/,
    pid: process.pid,
    plugin: '@plugboard/tool-clock',
    n: 1,
    msg: 'returned the time',
  });
});

t.test('a field with the name of a secret is not logged', async (t) => {
  const { log, lines } = written();
  log.info({
    apiKey: 'hush',
    model: { api_key: 'hush', password: 'hush', token: 'hush' },
    req: { headers: { authorization: 'hush \\"quoted\\"', cookie: ['hush', 'hush]'], host: 'shown' } },
  });
  t.notMatch(lines[0], 'hush');
  t.match(JSON.parse(lines[0] ?? ''), { req: { headers: { authorization: '[redacted]', cookie: '[redacted]' } } });
  t.match(lines[0], 'shown');
});

t.test('a credential is not logged, whether recognized by its form or from the configuration', async (t) => {
  const { log, lines } = written(['hunter2', 'hunter2-longer', 'has "quotes"\nand lines', 'a.*b', 'abc']);
  log.info({ body: { deep: [`x ${key} y`] }, auth: token }, `token ${token}; a.*b; aXXb; abc`);
  log.error({ err: new Error('refused hunter2-longer and hunter2', { cause: new Error('has "quotes"\nand lines') }) });
  for (const line of lines) t.ok(JSON.parse(line), 'still JSON');
  const [first = '', second = ''] = lines;
  for (const secret of [token, key, 'a.*b']) t.notMatch(first, secret);
  t.match(first, 'token [redacted]; [redacted]; aXXb; abc', 'a value that is too short to be a secret stays');
  t.match(first, 'x [redacted] y');
  t.match(second, 'refused [redacted] and [redacted]', 'of two secrets that begin alike, the longer one is removed');
  t.notMatch(second, 'quotes');
});

t.test('on a terminal a line is formatted for people', async (t) => {
  const plain = (fields: object) =>
    readable(JSON.stringify({ level: 'warn', time: '2026-11-21T14:05:09.000Z', service: 'plugboard', pid: 1, ...fields }));
  t.equal(plain({ msg: 'slow', agent: 'a', note: 'two words', n: 2 }), '14:05:09 warn  slow  agent=a note="two words" n=2\n');
  t.equal(plain({ msg: 'broke', err: { stack: 'Error: x\n    at y' } }), '14:05:09 warn  broke\n    Error: x\n        at y\n');
  t.equal(readable('not JSON\n'), 'not JSON\n', 'a line that is not JSON is shown unchanged');
});

t.test('errors that cannot be read, and very long ones, are logged all the same', async (t) => {
  const thrower = () => {
    throw new Error('cannot be read');
  };
  const getter = Object.defineProperty(new Error('with a getter'), 'field', { enumerable: true, get: thrower });
  for (const [err, message] of [
    [Object.freeze(new Error('frozen')), 'frozen'],
    [getter, 'with a getter'],
    [new Proxy({}, { get: thrower }), /cannot be read/],
    [new Error('short', { cause: new Error('y'.repeat(100_000)) }), /^short/],
    [new Error('x'.repeat(100_000)), /^x{32768}… \(100000 characters\)$/],
  ] as const) {
    const { log, lines } = written();
    log.error({ err }, 'failed');
    t.match(JSON.parse(lines[0] ?? ''), { msg: 'failed', err: { message } });
    t.ok((lines[0]?.length ?? 0) < 110_000);
  }
  const { log, lines } = written();
  log.error({ err: 'z'.repeat(100_000) });
  t.ok((lines[0]?.length ?? 0) < 40_000, 'a string that was thrown');
});

t.test('a changed level changes every logger that was made before, and theirs', async (t) => {
  const lines: string[] = [];
  const clock = new ManualClock();
  const { log, adjust } = createLogger({ level: 'info', secrets: [], clock, sink: { write: (line) => lines.push(line) } });
  const child = log.child({ plugin: 'a' });
  const grandchild = child.child({ entry: 'a.b' });
  adjust({ level: 'debug', secrets: [] });
  for (const one of [log, child, grandchild, grandchild.child({})]) one.debug('shown');
  t.equal(lines.length, 4);
  adjust({ level: 'error', secrets: [] });
  for (const one of [log, child, grandchild]) one.warn('not shown');
  t.equal(lines.length, 4);
  t.notOk(grandchild.isLevelEnabled('warn'));
});
