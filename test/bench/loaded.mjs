// Lists what a start loads: by package, its modules, their bytes and the time in them, the lowest
// of five starts. See README.md.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { HERE } from './servers.mjs';

const { values: options } = parseArgs({ options: { files: { type: 'boolean', default: false } } });
const RUNS = 5;

const folder = mkdtempSync(join(tmpdir(), 'plugboard-bench-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const list = join(folder, 'modules.json');
await started([`--import=${new URL('./record-modules.mjs', import.meta.url)}`], { MODULES: list });
const modules = JSON.parse(readFileSync(list, 'utf8'));
const times = new Map();
for (let run = 0; run < RUNS; run++) {
  const profiles = join(folder, `profiles-${run}`);
  await started(['--cpu-prof', '--cpu-prof-interval=100', `--cpu-prof-dir=${profiles}`]);
  for (const [url, time] of selfTimes(profiles)) times.set(url, [...(times.get(url) ?? []), time]);
}

const rows = new Map();
const rowOf = (name) => rows.get(name) ?? rows.set(name, { modules: 0, bytes: 0, ms: 0 }).get(name);
for (const { url, bytes } of modules) {
  const row = rowOf(nameOf(url));
  row.modules++;
  row.bytes += bytes;
}
for (const [url, all] of times) rowOf(nameOf(url)).ms += (all.length === RUNS ? Math.min(...all) : 0) / 1000;

console.log('    ms   KiB   modules');
const sorted = [...rows].toSorted(([, a], [, b]) => b.ms - a.ms || b.bytes - a.bytes);
for (const [name, { modules: count, bytes, ms }] of sorted) {
  if (ms < 0.1 && bytes < 1024) continue;
  console.log(`${ms.toFixed(1).padStart(6)} ${(bytes / 1024).toFixed(0).padStart(5)} ${String(count).padStart(9)}   ${name}`);
}

/** Runs a server until it listens, and stops it. */
async function started(nodeOptions, env = {}) {
  const args = [...nodeOptions, join(HERE, 'node_modules/.bin/plugboard'), 'start', '-c', join(HERE, 'test/bench/start.yaml')];
  const child = spawn(process.execPath, args, {
    cwd: HERE,
    env: { ...process.env, BENCH_SESSIONS: join(folder, 'sessions.db'), ...env },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let printed = '';
  for await (const piece of child.stdout.setEncoding('utf8')) {
    printed += piece;
    if (/^ *address/m.test(printed)) break;
  }
  await sleep(50);
  child.kill('SIGTERM');
  await once(child, 'exit');
}

/** Microseconds in the functions of each script. */
function selfTimes(profiles) {
  const [file] = readdirSync(profiles);
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(join(profiles, file), 'utf8'));
  const urls = new Map(nodes.map(({ id, callFrame }) => [id, callFrame.url || callFrame.functionName]));
  const sums = new Map();
  for (const [index, id] of samples.entries()) sums.set(urls.get(id), (sums.get(urls.get(id)) ?? 0) + timeDeltas[index]);
  sums.delete('(idle)');
  return sums;
}

function nameOf(url) {
  if (options.files) return url.startsWith('file:') ? fileURLToPath(url).replace(HERE, '') : url;
  if (url.startsWith('node:')) return 'node';
  const [, dependency] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(url) ?? [];
  return dependency ?? /\/(?:plugins\/)?([^/]+)\/(?:dist|src|bin)\//.exec(url)?.[1] ?? url;
}
