// Starts the servers under test, each in a process of its own that tells its usage.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const nowhere = openSync('/dev/null', 'w');
const execArgv = ['--expose-gc', `--import=${new URL('./probe.mjs', import.meta.url)}`];
const stdio = ['ignore', nowhere, 'inherit', 'ipc'];

export async function startModel() {
  const child = fork(here('./model.mjs'), { execArgv: [], stdio });
  const [{ port }] = await once(child, 'message');
  return { child, port };
}

export async function startServer(name, modelPort) {
  const env = { ...process.env, MODEL_PORT: String(modelPort) };
  if (name !== 'plugboard') {
    const child = fork(here(`./${name}.mjs`), { execArgv, env, stdio });
    const [{ port }] = await once(child, 'message');
    return server(name, child, port);
  }
  const port = await freePort();
  const args = ['start', '-c', here('./plugboard.bench.yaml')];
  const child = fork(here('../../kernel/bin/plugboard.js'), args, {
    execArgv,
    env: { ...env, BENCH_PORT: String(port) },
    stdio: ['ignore', nowhere, nowhere, 'ipc'],
  });
  await answering(`http://127.0.0.1:${port}/readyz`, child);
  return server(name, child, port);
}

function server(name, child, port) {
  return {
    name,
    port,
    /** For a look from outside, with a profiler or the system's own accounting. */
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
  for (let tries = 0; tries < 200; tries++) {
    if (child.exitCode !== null) throw new Error(`plugboard exited with ${child.exitCode}`);
    try {
      if ((await fetch(url)).ok) return;
    } catch {}
    await sleep(50);
  }
  throw new Error(`${url} does not answer`);
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  return port;
}
