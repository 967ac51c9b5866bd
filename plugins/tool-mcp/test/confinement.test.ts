import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkOptions } from '@plugboard/testing';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { limitedCommand } from '../src/process/launch.js';
import { redactorOf } from '../src/process/secrets.js';
import { entry, fixture } from './entry.js';

/**
 * What confines the process of a server: its user, the permission model of Node.js, resource
 * limits, and what is read of its output.
 */

const isRoot = process.getuid?.() === 0;
const NOBODY = { uid: 65534, gid: 65534 };

/** The folders that the fixture and its packages are in. */
const PROGRAM = ['./fixtures', '../../../node_modules'];

/** Removes the loader that tap adds to every child: it cannot run under the permission model. */
const WITHOUT_TAP = `NODE_OPTIONS="$(echo "$NODE_OPTIONS" | sed -E 's/"?--import=[^ "]*"?//g')" exec "$0" "$@"`;

/** The options of an entry that runs the fixture without tap's loader. */
function plainFixture() {
  const { command, args } = fixture();
  return { command: '/bin/sh', args: ['-c', WITHOUT_TAP, command, ...args] };
}

/** A file that the user of the tests can read. */
function secretFile(t: Test): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'mcp-')));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'secret.txt');
  writeFileSync(file, 'the secret', { mode: 0o600 });
  return file;
}

t.test(
  'S-45 a server under the permission model of Node.js reads neither the environment of Plugboard nor other files',
  async (t) => {
    const file = secretFile(t);
    const environ = `/proc/${process.pid}/environ`;
    const free = entry(t, fixture());
    await free.start();
    t.equal(await free.text('readFile', { path: file }), 'the secret', 'without `node` it can');
    if (process.platform === 'linux') t.match(await free.text('readFile', { path: environ }), /PATH=/, 'that of its parent, too');

    const confined = entry(t, { ...plainFixture(), node: { read: PROGRAM } });
    await confined.start();
    for (const path of [file, environ]) {
      t.match(
        await confined.call('readFile', { path }),
        { isError: true, content: [{ text: /ERR_ACCESS_DENIED|permission/i }] },
        path,
      );
    }
    t.match(await confined.call('writeFile', { path: file, text: 'x' }), { isError: true });
    t.match(await confined.call('run', { command: 'id' }), { isError: true });
    t.equal(readFileSync(file, 'utf8'), 'the secret');

    const allowed = entry(t, {
      ...plainFixture(),
      node: { read: [...PROGRAM, file], write: [file], childProcesses: true, memory: '64mb' },
    });
    await allowed.start();
    t.equal(await allowed.text('readFile', { path: file }), 'the secret');
    await allowed.text('writeFile', { path: file, text: 'changed' });
    t.equal(readFileSync(file, 'utf8'), 'changed');
    t.match(await allowed.text('run', { command: 'id' }), /uid=/);
    t.ok(Number(await allowed.text('heapLimit')) < 600, 'the heap is limited');
  },
);

t.test('S-45 a server that runs as another user cannot read the environment of Plugboard', async (t) => {
  const file = secretFile(t);
  const files = entry(t, { ...fixture(), user: `${NOBODY.uid}:${NOBODY.gid}`, env: { GREETING: 'hello' } });
  if (!isRoot) {
    await t.rejects(files.start(), { message: /cannot run as the user 65534: run Plugboard as root, or leave out `user`/ });
    return;
  }
  await files.start();
  t.match(await files.text('run', { command: 'id' }), /^uid=65534\S* gid=65534\S*( groups=65534\S*)?\s*$/);
  for (const path of [file, `/proc/${process.pid}/environ`]) {
    t.match(await files.call('readFile', { path }), { isError: true, content: [{ text: /EACCES/ }] }, path);
  }
  t.match(JSON.parse(await files.text('surroundings')).env, { HOME: '/', GREETING: 'hello' });
  await files.stop(); // it can be ended, though it is another user's

  const named = entry(t, { ...fixture(), user: 'nobody' });
  await named.start();
  t.match(JSON.parse(await named.text('surroundings')).env, { USER: 'nobody', LOGNAME: 'nobody' });
});

t.test('S-45 the system limits the resources of a server', async (t) => {
  const files = entry(t, { ...fixture('--absent', '$HOME;`id`'), limits: { openFiles: 40, cpuTime: '1s' } });
  await files.start();
  t.match(await files.text('run', { command: 'ulimit -n' }), /^40\s*$/);
  t.strictSame(
    JSON.parse(await files.text('surroundings')).argv,
    ['--absent', '$HOME;`id`'],
    'no shell interprets the arguments',
  );
  await t.rejects(files.call('spin'), { code: 'mcp_call_lost' });
  t.match(await files.logged(/has ended/), { msg: /was ended by SIG(XCPU|KILL)$/ });

  const missing = entry(t, { command: 'no-such-program', limits: { openFiles: 40 } });
  await t.rejects(missing.start(), { message: /exited with code 127; its last output:\n.*no-such-program/ });
});

t.test('S-45 limits are set by a shell that does not interpret the program', async (t) => {
  const launch = { command: 'npx', args: ['-y', '; id'], env: {}, cwd: '/', user: undefined, nodeOptions: undefined };
  t.strictSame(limitedCommand({ ...launch, limits: {} }), { command: 'npx', args: ['-y', '; id'] });
  const limits = { addressSpace: 1024 ** 3, cpuTime: 60, openFiles: 64, processes: 20 };
  t.strictSame(limitedCommand({ ...launch, limits }), {
    command: '/bin/sh',
    args: ['-c', 'ulimit -v 1048576 && ulimit -t 60 && ulimit -n 64 && ulimit -u 20 && exec "$0" "$@"', 'npx', '-y', '; id'],
  });
});

t.test('S-45 a server that floods its standard error is read slowly, and few lines of it are logged', async (t) => {
  const files = entry(t, fixture());
  await files.start();
  const mib = 8;
  const flooded = files.call('flood', { mib });
  let isFlooded = false;
  void flooded.then(() => {
    isFlooded = true;
  });
  let seconds = 0;
  for (; !isFlooded; seconds++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    files.clock.advance(1_000);
  }
  t.ok(seconds >= mib * 2, `${mib} MiB took ${seconds} seconds of the clock`);
  const logged = files.lines.filter(({ from }) => from === 'stderr');
  t.ok(logged.length <= 100 * (seconds + 2), `${logged.length} lines of ${mib * 1024}`);
  t.ok(
    logged.some(({ left_out }) => Number(left_out) > 0),
    'the log says how many were left out',
  );
});

t.test('S-45 secrets in arguments are redacted like those in `env`', async (t) => {
  const redact = redactorOf({
    command: 'server',
    args: [
      ...['--token', 'token-value', '--api-key=key-value', 'DB_PASSWORD=password-value', '--verbose', './data/folder'],
      ...['postgres://desk:url%20secret@db/desk', 'sk0123456789abcdefghij', '@modelcontextprotocol/server-filesystem'],
    ],
    env: { ANYTHING: 'env-value', SHORT: 'on' },
    cwd: '/',
    user: undefined,
    limits: {},
    nodeOptions: undefined,
  });
  for (const secret of [
    'token-value',
    'key-value',
    'password-value',
    'url%20secret',
    'url secret',
    'sk0123456789abcdefghij',
    'env-value',
  ]) {
    t.equal(redact(`<${secret}>`), '<[redacted]>', secret);
  }
  for (const plain of ['--token', '--verbose', './data/folder', '@modelcontextprotocol/server-filesystem', 'on', 'desk']) {
    t.equal(redact(plain), plain);
  }
});

t.test('S-45 options that the system cannot follow are configuration errors', async (t) => {
  const faultsOf = (options: object) => checkOptions(plugin, { command: 'npx', ...options }).faults;
  t.strictSame(faultsOf({ user: 'nobody', limits: { openFiles: 64 }, node: { read: ['.'] } }), []);
  t.match(faultsOf({ user: 'no-such-user' }), [
    /^user: "no-such-user" is not in \/etc\/passwd: create the user, or set `uid:gid`$/,
  ]);
  t.match(faultsOf({ user: 'root; id' }), [/^user: /]);
  t.match(faultsOf({ limits: { openFiles: 1 } }), [/^limits\.openFiles: /]);
});
