import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { distribution } from './plugboard.js';

const START = `${process.execPath} ${join(import.meta.dirname, '../bin/plugboard.js')} start`;

/** A server that a shell starts in a terminal of its own, which `script` keeps open. */
class TerminalServer {
  readonly #script: ChildProcess;
  readonly #folder: string;

  /** @param command of the shell; `START` in it is `plugboard start`, whose log is in a file. */
  static async start(t: Test, command: string): Promise<TerminalServer> {
    const server = new TerminalServer(t, command);
    await eventually(() => server.pid !== undefined);
    return server;
  }

  private constructor(t: Test, command: string) {
    this.#folder = t.testdir({ ...distribution });
    const { PATH, NODE_OPTIONS } = process.env;
    const env = { PATH, NODE_OPTIONS, TMPDIR: this.#folder };
    const shown = command.replace('START', `${START} 2>log`);
    this.#script = spawn('script', ['-qec', shown, '/dev/null'], { cwd: this.#folder, env, stdio: 'pipe' });
    t.teardown(() => {
      if (this.pid !== undefined) process.kill(this.pid, 'SIGKILL');
      this.#script.kill('SIGKILL');
    });
  }

  /** The process of the server, while it runs. It keeps a record until it exits. */
  get pid(): number | undefined {
    const records = join(this.#folder, `plugboard-${userInfo().uid}`);
    const [record] = existsSync(records) ? readdirSync(records) : [];
    return record === undefined ? undefined : Number(/-(\d+)\.json/.exec(record)?.[1]);
  }

  get log(): string {
    return readFileSync(join(this.#folder, 'log'), 'utf8');
  }

  signal(signal: NodeJS.Signals): void {
    if (this.pid !== undefined) process.kill(this.pid, signal);
  }

  async closeTerminal(): Promise<void> {
    this.#script.kill('SIGKILL');
    await once(this.#script, 'exit');
  }
}

t.test('a server that was started in a terminal stops when the terminal is closed', async (t) => {
  const server = await TerminalServer.start(t, 'START');
  await server.closeTerminal();
  await eventually(() => server.pid === undefined);
  t.match(server.log, 'SIGHUP: the terminal was closed: stopping');
  t.notMatch(server.log, /configuration|"(error|fatal)"/);
});

t.test('SIGHUP reloads a server in a terminal that is open', async (t) => {
  const server = await TerminalServer.start(t, 'START');
  server.signal('SIGHUP');
  await eventually(() => server.log.includes('SIGHUP: the configuration has not changed'));
  t.notMatch(server.log, 'stopping');
});

t.test('a shell that sends SIGHUP to its jobs just before it exits stops them', async (t) => {
  // A job of its own, which the system does not signal when the terminal is closed.
  const server = await TerminalServer.start(t, 'set -m; START & wait');
  server.signal('SIGHUP');
  await server.closeTerminal();
  await eventually(() => server.pid === undefined);
  t.match(server.log, 'SIGHUP: the terminal was closed: stopping');
});

t.test('a server started with nohup, or with setsid, outlives the terminal', async (t) => {
  for (const command of ['nohup START >out & wait', 'setsid START </dev/null >out & wait']) {
    const server = await TerminalServer.start(t, command);
    await server.closeTerminal();
    if (command.startsWith('setsid')) server.signal('SIGHUP');
    await eventually(() => server.log.includes('SIGHUP: the configuration has not changed'));
    t.notMatch(server.log, 'stopping', command);
    server.signal('SIGTERM');
    await eventually(() => server.pid === undefined);
  }
});
