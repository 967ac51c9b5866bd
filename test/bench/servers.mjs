// Starts the servers under test, each in its own process, which reports its usage.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const nowhere = openSync('/dev/null', 'w');
/** Options of a Node process that reports its usage. */
export const PROBE = ['--expose-gc', `--import=${new URL('./probe.mjs', import.meta.url)}`];
const stdio = ['ignore', nowhere, 'inherit', 'ipc'];

const children = new Set();
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});

/** This checkout. */
export const HERE = here('../..');

export async function startModel() {
  const child = fork(here('./model.mjs'), { execArgv: [], stdio });
  const [{ port }] = await once(child, 'message');
  return { child, port };
}

/** @param name a file of this folder: `raw-pipe` or `koa-floor`. */
export async function startPlain(name, modelPort) {
  const env = { ...process.env, MODEL_PORT: String(modelPort) };
  const child = fork(here(`./${name}.mjs`), { execArgv: PROBE, env, stdio });
  const [{ port }] = await once(child, 'message');
  return server(name, child, port);
}

/**
 * @param checkout the folder of a built checkout.
 * @param sessions the path of its session file.
 * @param nodeOptions options of its Node process, instead of the ones that report its usage.
 * @param config a file of this folder, or its path.
 */
export async function startPlugboard(name, { checkout, modelPort, sessions, nodeOptions = PROBE, config = 'bench.yaml' }) {
  const port = await freePort();
  const child = fork(join(checkout, 'node_modules/.bin/plugboard'), ['start', '-c', resolve(checkout, 'test/bench', config)], {
    execArgv: nodeOptions,
    cwd: checkout,
    env: { ...process.env, MODEL_PORT: String(modelPort), BENCH_PORT: String(port), BENCH_SESSIONS: sessions },
    stdio: ['ignore', nowhere, nowhere, 'ipc'],
  });
  children.add(child);
  await answering(`http://127.0.0.1:${port}/readyz`, child);
  return server(name, child, port);
}

/**
 * A server of another project, in the folder where it was installed.
 *
 * @param args of its main file, by its port.
 * @throws Error with what it printed, if it does not answer.
 */
export async function startPeer(name, { folder, main, args = () => [], modelUrl }) {
  const port = await freePort();
  const child = fork(join(folder, main), args(port), {
    execArgv: PROBE,
    cwd: folder,
    env: { ...process.env, PORT: String(port), MODEL_URL: modelUrl, NODE_ENV: 'production' },
    stdio: ['ignore', nowhere, 'pipe', 'ipc'],
  });
  children.add(child);
  let printed = '';
  child.stderr.on('data', (data) => {
    printed = (printed + data).slice(-2_000);
  });
  try {
    await listening(port, child);
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error(`${error.message}: ${printed.trim().split('\n').at(-1) ?? ''}`);
  }
  return server(name, child, port);
}

function server(name, child, port) {
  return {
    name,
    port,
    /** For a profiler or the system's own accounting. */
    pid: child.pid,
    /** CPU microseconds so far. */
    cpu: () => ask(child, 'cpu'),
    /** Bytes of live heap, and resident. */
    memory: () => ask(child, 'memory'),
    stop: () => child.kill('SIGKILL'),
  };
}

async function ask(child, question) {
  child.send(question);
  const [answer] = await once(child, 'message');
  return answer;
}

async function answering(url, child) {
  for (let tries = 0; tries < 2000; tries++) {
    if (child.exitCode !== null) throw new Error(`plugboard exited with ${child.exitCode}`);
    try {
      if ((await fetch(url)).ok) return;
    } catch {}
    await sleep(10);
  }
  throw new Error(`${url} does not answer`);
}

/** Waits until a port takes connections. */
async function listening(port, child) {
  for (let tries = 0; tries < 600; tries++) {
    if (child.exitCode !== null) throw new Error(`exited with ${child.exitCode}`);
    const socket = connect(port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      return;
    } catch {
      await sleep(50);
    } finally {
      socket.destroy();
    }
  }
  throw new Error('does not listen after 30 seconds');
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  return port;
}
