import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { distribution, Plugboard, plugin, run } from './plugboard.js';

/** A channel of a stranger: it contributes to `agent.channel`, and uses no library. */
const CHANNEL = plugin(
  'pager',
  `
    const { Channels } = contracts;
    const status = { platform: 'pager', state: ctx.config.state, since: 0, waiting: 2, unsent: 1, failed: 2 };
    if (ctx.config.state === 'failed') status.reason = 'the token was refused;\\n\\u001b[2Jset another';
    else status.account = '@desk_bot';
    let paired = [{ sender: '7', since: 0 }];
    let requests = [{ code: 'K7M2-QX4R', sender: '42', name: 'Ann\\u001b[31m', expires: 3600000 }];
    const pairing = {
      requests: async () => requests,
      paired: () => paired,
      approve: async (code) => {
        const found = requests.find((one) => one.code.replace('-', '') === code.toUpperCase().replace('-', ''));
        if (!found) return undefined;
        requests = [];
        paired = [...paired, { sender: found.sender, name: found.name, since: 1000 }];
        return paired.at(-1);
      },
      remove: async (sender) => paired.length > (paired = paired.filter((one) => one.sender !== sender)).length,
    };
    const reply = (id) => ({ id, chat: 'c1', text: 'Hello\\nthere', reason: 'chat not found', attempts: 3, failedAt: 5000 });
    let failed = [reply('r1'), reply('r2'), reply('r3')];
    const take = async (id) => failed.length > (failed = failed.filter((one) => one.id !== id)).length;
    const outbox = { failed: () => failed, send: take, drop: take, sendWaiting: () => ['r7'] };
    ctx.contribute(Channels, ctx.config.state === 'standby' ? { status: () => status } : { status: () => status, pairing, outbox });
    return { start() {}, stop() {} };
  `,
  '{ state: { type: "string", default: "connected" } }',
);

const TRANSPORTS = 'web: { use: ./web.js }, desk: { use: ./pager.js }, other: { use: ./pager.js, state: standby }';

/** Runs commands of operators against a server whose transports are these. */
async function opened(t: Test, transports = TRANSPORTS, temporary = t.testdirName) {
  const yaml = String(distribution['plugboard.yaml']).replace('web: { use: ./web.js }', transports);
  const cwd = t.testdir({ ...distribution, 'plugboard.yaml': yaml, 'pager.js': CHANNEL });
  const env = { TMPDIR: temporary };
  const plugboard = (...args: string[]) => run(t, args, { cwd, env });
  const records = () => {
    const folder = join(temporary, `plugboard-${userInfo().uid}`);
    const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : [];
    return names.flatMap((name): { pid: number; socket: string }[] => {
      try {
        return [JSON.parse(readFileSync(join(folder, name), 'utf8'))];
      } catch {
        return []; // a server that starts has just removed what a killed one left
      }
    });
  };
  const start = async () => {
    const before = new Set(records().map(({ pid }) => pid));
    const program = new Plugboard(t, ['start'], { cwd, env });
    await eventually(() => records().some(({ pid }) => !before.has(pid)));
    return program;
  };
  return { program: await start(), start, plugboard, records, cwd };
}

t.test('plugboard channels shows the channels of the running server, and whether all are ready', async (t) => {
  const { plugboard, records } = await opened(t);
  const { code, stdout, stderr } = await plugboard('channels');
  t.equal(stderr, '');
  t.equal(code, 0);
  t.strictSame(stdout.split('\n').slice(0, 3), [
    'entry  platform  account    state      since                     waiting  unsent  failed',
    'desk   pager     @desk_bot  connected  1970-01-01T00:00:00.000Z  2        1       2',
    'other  pager     @desk_bot  standby    1970-01-01T00:00:00.000Z  2        1       2',
  ]);
  const json = await plugboard('channels', '--json', '--entry', 'transports.desk', '-c', 'plugboard.yaml');
  t.strictSame(JSON.parse(json.stdout), {
    channels: [
      {
        server: records()[0]?.pid,
        entry: 'desk',
        platform: 'pager',
        account: '@desk_bot',
        state: 'connected',
        reason: null,
        since: '1970-01-01T00:00:00.000Z',
        waiting: 2,
        unsent: 1,
        failed: 2,
      },
    ],
  });
  t.match(await plugboard('channels', '--entry', 'desc'), {
    code: 2,
    stderr: /the server has no channel "desc"; its channels are desk, other/,
  });
});

t.test('a channel that fails is an exit code, and its reason moves no cursor', async (t) => {
  const { plugboard } = await opened(t, 'web: { use: ./web.js }, desk: { use: ./pager.js, state: failed }');
  const { code, stdout } = await plugboard('channels');
  t.equal(code, 1);
  t.match(stdout, /failed +1970-01-01T00:00:00.000Z .* the token was refused; \[2Jset another\n$/);
});

t.test('plugboard pair lists codes and senders, lets one in, and removes one', async (t) => {
  const { plugboard } = await opened(t);
  t.match(await plugboard('pair'), {
    code: 0,
    stdout: /K7M2-QX4R +desk +42 +Ann \[31m +1970-01-01T01:00:00.000Z\n\nentry +sender +paired since\ndesk +7 /,
  });
  t.match(await plugboard('pair', 'XXXX-XXXX'), { code: 1, stderr: /no channel waits for the code "XXXX-XXXX"; plugboard pair/ });
  t.match(await plugboard('pair', 'k7m2qx4r', '--remove', '7'), { code: 2, stderr: /exclude each other/ });
  t.match(await plugboard('pair', 'k7m2qx4r'), { code: 0, stdout: 'Ann [31m (42) was let in (desk)\n' });
  t.match(await plugboard('pair', '--remove', '7'), { code: 0, stdout: '7 was removed (desk)\n' });
  t.match(await plugboard('pair', '--remove', '7'), { code: 1, stderr: /no channel has let in the sender "7"/ });
  const { stdout } = await plugboard('pair', '--json');
  const paired = [{ entry: 'desk', sender: '42', name: 'Ann\u001b[31m', since: '1970-01-01T00:00:01.000Z' }];
  t.strictSame(JSON.parse(stdout), { requests: [], paired });
});

t.test('plugboard outbox lists failed replies, sends them again, and drops them', async (t) => {
  const { plugboard } = await opened(t);
  t.match(await plugboard('outbox'), { code: 0, stdout: /^id .*\nr1 +desk +c1 +3 +1970.* +chat not found +Hello there\nr2 / });
  t.match(await plugboard('outbox', 'send', 'r9'), {
    code: 1,
    stderr: /no failed reply has the id "r9"; plugboard outbox lists/,
  });
  for (const wrong of [['send'], ['drop', '--all'], ['--all'], ['sent', 'r1'], ['send', 'r1', '--all']])
    t.equal((await plugboard('outbox', ...wrong)).code, 2, wrong.join(' '));
  t.match(await plugboard('outbox', 'send', 'r1'), { code: 0, stdout: '1 reply sent again\n' });
  t.match(await plugboard('outbox', 'drop', 'r2'), { code: 0, stdout: '1 reply dropped\n' });
  const left = {
    id: 'r3',
    entry: 'desk',
    chat: 'c1',
    text: 'Hello\nthere',
    reason: 'chat not found',
    attempts: 3,
    failed_at: '1970-01-01T00:00:05.000Z',
  };
  t.strictSame(JSON.parse((await plugboard('outbox', '--json')).stdout), { failed: [left] });
  // Also the one that waits for its next attempt.
  t.match(await plugboard('outbox', 'send', '--all'), { code: 0, stdout: '2 replies sent again\n' });
  t.match(await plugboard('outbox'), { code: 0, stdout: 'no replies have failed\n' });
});

t.test('without a server, or a file, the commands say so', async (t) => {
  const { program, plugboard } = await opened(t, 'web: { use: ./web.js }');
  t.match(await plugboard('channels'), { code: 0, stdout: 'the server of plugboard.yaml has no channels\n' });
  program.kill('SIGTERM');
  await program.exit();
  t.match(await plugboard('channels'), { code: 1, stderr: /no running server of plugboard.yaml was found/ });
  t.equal((await plugboard('pair', '-c', 'missing.yaml')).code, 78);
});

t.test('only the user can reach the socket, two servers have one each, and none is left behind', async (t) => {
  const temporary = mkdtempSync('/tmp/t-');
  t.teardown(() => rmSync(temporary, { recursive: true }));
  const { program, start, plugboard, records } = await opened(t, TRANSPORTS, temporary);
  const second = await start();
  const sockets = records().map(({ socket }) => socket);
  t.equal(new Set(sockets).size, 2);
  for (const socket of sockets) {
    t.ok(socket.startsWith(temporary));
    t.equal(statSync(socket).mode & 0o777, 0o600);
    t.equal(statSync(dirname(socket)).mode & 0o777, 0o700);
  }
  // As if the first was killed, and its record says that its process lives.
  renameSync(String(sockets[0]), `${sockets[0]}.gone`);
  t.match(await plugboard('channels'), { code: 0, stdout: /desk/ }, 'a socket that is gone is as no server');
  renameSync(`${sockets[0]}.gone`, String(sockets[0]));
  const listed = (await plugboard('channels')).stdout;
  for (const { pid } of records()) t.match(listed, new RegExp(`^${pid} +desk `, 'm'), 'and which server is which');
  t.match(await plugboard('pair', 'K7M2-QX4R'), { code: 0 });
  t.match((await plugboard('pair', '--json')).stdout, '"requests": [\n', 'the second server still waits');
  program.kill('SIGKILL');
  await program.exit();
  t.match(await plugboard('channels'), { code: 0 }, 'the socket of a killed server is not asked');
  second.kill('SIGTERM');
  t.equal(await second.exit(), 0);
  const third = await start();
  t.equal(records().length, 1);
  const folders = readdirSync(join(temporary, `plugboard-${userInfo().uid}`)).filter((name) => name.startsWith('socket-'));
  t.equal(folders.length, 1, 'what the killed server left is removed');
  third.kill('SIGTERM');
  await third.exit();
});

t.test('the socket of a long path is in a short folder, and takes these requests alone', async (t) => {
  const { records } = await opened(t);
  t.ok(Buffer.byteLength(t.testdirName) > 103);
  const socket = String(records()[0]?.socket);
  t.ok(socket.startsWith('/tmp/plugboard-'), socket);
  t.ok(Buffer.byteLength(socket) <= 103);
  const ask = async (request: string) => {
    const connection = connect(socket);
    connection.write(request);
    return JSON.parse(await text(connection)) as unknown;
  };
  t.match(await ask('{"command":"channels"}\n'), { channels: [{ entry: 'desk' }, { entry: 'other' }] });
  t.match(await ask('{"command":"reload"}\n'), { error: /the command is unknown/ });
  t.match(await ask('{"command":"pair","change":{"kind":"approve","value":7}}\n'), { error: 'the request is invalid' });
  t.match(await ask('GET / HTTP/1.1\n'), { error: String });
  t.match(await ask(`{"command":"${'x'.repeat(20_000)}"}\n`), { error: 'the request has more than 16384 bytes' });
});
