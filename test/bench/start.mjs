// Row 11: how long the server takes to listen, and its resident memory then.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Milliseconds of `node -e 0`. */
export async function bareNode() {
  const start = performance.now();
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit');
  return performance.now() - start;
}

/** Milliseconds until the server of a checkout listens, and its resident bytes then. */
export async function startToListening(checkout, sessions) {
  const start = performance.now();
  const child = await listeningServer(checkout, sessions);
  const milliseconds = performance.now() - start;
  const memory = residentMemory(child.pid);
  child.kill('SIGKILL');
  return { milliseconds, ...memory };
}

/** Starts the server of a checkout once and stops it, so that its compile cache is complete. */
export async function fillCompileCache(checkout, sessions) {
  const child = await listeningServer(checkout, sessions);
  child.kill('SIGTERM');
  await once(child, 'exit');
}

async function listeningServer(checkout, sessions) {
  const args = [join(checkout, 'node_modules/.bin/plugboard'), 'start', '-c', join(checkout, 'test/bench/start.yaml')];
  const child = spawn(process.execPath, args, {
    cwd: checkout,
    env: { ...process.env, BENCH_SESSIONS: sessions },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8');
  for await (const piece of child.stdout) {
    printed += piece;
    if (/^ *address/m.test(printed)) return child;
  }
  throw new Error(`The server of ${checkout} did not start`);
}

/** Bytes, from the system's own accounting. Without it (not Linux) all are NaN. */
export function residentMemory(pid) {
  let status = '';
  try {
    status = readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {}
  const bytes = (field) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) * 1024;
  return { resident: bytes('VmRSS'), anonymous: bytes('RssAnon') };
}
