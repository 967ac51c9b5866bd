// Measures Plugboard beside other servers, in turns within one run. See ../README.md.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { kinds, latencies, open, send } from '../load.mjs';
import { cpuPer } from '../measure.mjs';
import { HERE, startModel, startPeer, startPlain, startPlugboard } from '../servers.mjs';
import { residentMemory } from '../start.mjs';
import { percentile, summary } from '../statistics.mjs';
import { install } from './install.mjs';
import { peers } from './peers.mjs';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    out: { type: 'string', default: 'bench-peers.json' },
    docs: { type: 'boolean', default: false },
  },
});
const CALLERS = 8;
const TOKENS = 100;
const ROUNDS = options.quick ? 3 : 7;
/** Seconds of a round of each server. */
const ROUND = options.quick ? 0.4 : 1;
/** A server is warm after so many turns of a kind, or so many seconds. */
const WARM = options.quick ? { turns: 1_000, seconds: 1.5 } : { turns: 10_000, seconds: 12 };
const LATENCIES = options.quick ? 60 : 300;
const STREAMS = options.quick ? 100 : 500;

const begun = performance.now();
const folder = mkdtempSync(join(tmpdir(), 'plugboard-bench-'));
const model = await startModel();
const modelUrl = `http://127.0.0.1:${model.port}/v1`;
const servers = [];
const leftOut = [];
process.on('exit', () => {
  for (const { stop } of servers) stop();
  model.child.kill();
  rmSync(folder, { recursive: true, force: true });
});

const own = { json: kinds.json, burst: kinds.burst, slow: kinds.slow };
await take('R, a raw pipe', own, () => startPlain('raw-pipe', model.port));
await take('Koa and one undici call', own, () => startPlain('koa-floor', model.port));
await take('Plugboard', { ...own, tool: kinds.tool }, () =>
  startPlugboard('plugboard', { checkout: HERE, modelPort: model.port, sessions: join(folder, 'sessions.db') }),
);
for (const { name, folder: source, package: named, turns, ...how } of peers(modelUrl)) {
  await take(name, turns, async () => {
    console.error(`Installing ${name} …`);
    const installed = await install(source);
    const { version } = JSON.parse(readFileSync(join(installed, 'node_modules', named, 'package.json'), 'utf8'));
    return { ...(await startPeer(name, { ...how, folder: installed, modelUrl })), version };
  });
}

await costs('json', (each) => each);
await costs('burst', (each) => each / TOKENS);
await costs('tool', (each) => each);
await eachServer('latency', async (server) => {
  const json = await latencies(server.port, server.turns.json, LATENCIES);
  const burst = await latencies(server.port, server.turns.burst, LATENCIES);
  server.figures.jsonMs = percentile(
    json.map(({ end }) => end),
    0.5,
  );
  server.figures.firstTokenMs = percentile(
    burst.map(({ first }) => first),
    0.5,
  );
});
await eachServer('memory', async (server) => {
  server.figures.loadedMiB = residentMemory(server.pid).resident / 2 ** 20;
  const before = await server.memory();
  const close = await open(server.port, STREAMS, server.turns.slow);
  await sleep(500);
  server.figures.streamKiB = ((await server.memory()).heap - before.heap) / STREAMS / 1024;
  close();
});

const report = {
  node: process.version,
  quick: options.quick,
  servers: servers.map(({ name, version, figures }) => ({ name, version, ...figures })),
  leftOut,
};
writeFileSync(options.out, `${JSON.stringify(report, null, 2)}\n`);
console.log(table(report));
if (options.docs) writeIntoDocs(table(report));
console.error(`${((performance.now() - begun) / 1000).toFixed(0)} s; written to ${options.out}`);
process.exit(0);

/** Starts a server and runs a turn of each kind. Leaves out one that fails, with its reason. */
async function take(name, turns, start) {
  let started;
  try {
    started = await start();
    const startedMiB = residentMemory(started.pid).resident / 2 ** 20;
    for (const kind of ['json', 'burst', 'tool'])
      if (turns[kind]) await send(started.port, turns[kind], { count: 1, callers: 1 });
    servers.push({ ...started, name, turns, figures: { startedMiB } });
  } catch (error) {
    started?.stop();
    leaveOut(name, error);
  }
}

/** Runs a step for each server that is left. */
async function eachServer(what, step) {
  for (const server of [...servers]) {
    try {
      await step(server);
    } catch (error) {
      server.stop();
      servers.splice(servers.indexOf(server), 1);
      leaveOut(`${server.name} (${what})`, error);
    }
  }
}

function leaveOut(name, { message }) {
  leftOut.push({ name, reason: message });
  console.error(`Without ${name}: ${message}`);
}

/** CPU microseconds of each server, of a kind of turn: the lowest of the rounds and all of them. */
async function costs(kind, unit) {
  const sizes = new Map();
  const rounds = new Map(servers.map((server) => [server, []]));
  await eachServer(kind, async (server) => {
    if (server.turns[kind]) sizes.set(server, await warm(server, server.turns[kind]));
  });
  for (let round = 0; round < ROUNDS; round++) {
    await eachServer(kind, async (server) => {
      const count = sizes.get(server);
      if (count) rounds.get(server).push(unit(await cpuPer(server, server.turns[kind], { count, callers: CALLERS })));
    });
  }
  for (const server of servers) if (sizes.has(server)) server.figures[kind] = summary(rounds.get(server));
}

/** Warms a server up. @returns the turns of a round. */
async function warm({ port }, kind) {
  const count = 10 * CALLERS;
  const start = performance.now();
  for (let sent = 0; ; ) {
    const before = performance.now();
    await send(port, kind, { count, callers: CALLERS });
    const now = performance.now();
    sent += count;
    if (sent >= WARM.turns || now - start >= WARM.seconds * 1000) {
      return Math.min(1_000, Math.max(2 * CALLERS, Math.round((count * ROUND * 1000) / (now - before))));
    }
  }
}

/** Replaces the table of the documentation. */
function writeIntoDocs(text) {
  const page = join(HERE, 'docs/reference/performance.md');
  const [before, , after] = readFileSync(page, 'utf8').split(/(?<=<!-- peers -->\n)|(?=<!-- end of peers -->)/);
  writeFileSync(page, `${before}\n${text}\n\n${after}`);
}

/** The report as a table of Markdown. */
function table({ servers: [raw, ...others], leftOut }) {
  const number = (value, digits = 0) => (Number.isFinite(value) ? value.toFixed(digits) : '–');
  const times = (figure, base) => (figure && base ? ` (${number(figure.low / base.low, 1)})` : '');
  const row = (server) => [
    [server.name, server.version].filter(Boolean).join(' '),
    number(server.json?.low) + times(server.json, raw.json),
    number(server.burst?.low, 1) + times(server.burst, raw.burst),
    number(server.tool?.low),
    number(server.jsonMs, 2),
    number(server.firstTokenMs, 2),
    number(server.startedMiB),
    number(server.loadedMiB),
    number(server.streamKiB),
  ];
  const lines = [
    [
      'server',
      'JSON turn, µs (× R)',
      'streamed token, µs (× R)',
      'turn with a tool, µs',
      'answer, ms',
      'first token, ms',
      'MiB after the start',
      'MiB after the load',
      'open stream, KiB',
    ],
    ['---', ...Array(8).fill('--:')],
    ...[raw, ...others].map(row),
  ].map((cells) => `| ${cells.join(' | ')} |`);
  return [...lines, ...leftOut.map(({ name, reason }) => `\nWithout ${name}: ${reason}`)].join('\n');
}
