// Measures the memory of a server, and what a smaller young generation saves and costs. See
// README.md.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { kinds, open, send } from './load.mjs';
import { cpuPer } from './measure.mjs';
import { HERE, PROBE, startModel, startPlugboard } from './servers.mjs';
import { residentMemory } from './start.mjs';
import { format, summary } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    /** MiB of a half of the young generation, or options of Node. `own` has neither. */
    young: { type: 'string', default: 'own,1,2,4,8,16' },
  },
});
const ROUNDS = options.quick ? 5 : 20;
/** Of JSON turns; half as many are streamed. */
const TURNS = 60_000 / (options.quick ? 6 : 1) / ROUNDS;
const CALLERS = 8;
const STREAMS = 500;
const IDLE = 10_000;

const folder = mkdtempSync(join(tmpdir(), 'plugboard-bench-'));
const model = await startModel();
process.on('exit', () => {
  model.child.kill();
  rmSync(folder, { recursive: true, force: true });
});

const MIB = 2 ** 20;
const resident = ({ pid }) => residentMemory(pid).resident / MIB;
let started = 0;
const start = (young) =>
  startPlugboard(young, {
    checkout: HERE,
    modelPort: model.port,
    sessions: join(folder, `${started++}.db`),
    nodeOptions: [...PROBE, ...optionsFor(young)],
  });
function optionsFor(young) {
  if (young === 'own') return [];
  return young.startsWith('--') ? young.split(' ') : [`--max-semi-space-size=${young}`];
}

console.log(`Node ${process.version}; ${ROUNDS} rounds of ${TURNS} turns, ${CALLERS} callers\n`);
const servers = [];
for (const young of options.young.split(',')) {
  const server = await start(young);
  await sleep(500);
  servers.push({ ...server, started: resident(server), json: [], burst: [], peak: 0 });
}
for (let round = -1; round < ROUNDS; round++) {
  for (const server of servers) {
    const json = await cpuPer(server, kinds.json, { count: TURNS, callers: CALLERS });
    const burst = await cpuPer(server, kinds.burst, { count: TURNS / 2, callers: CALLERS });
    server.peak = Math.max(server.peak, resident(server));
    if (round < 0) continue; // warm
    server.json.push(json);
    server.burst.push(burst / 100);
  }
}
const WIDTH = Math.max(12, ...servers.map(({ name }) => name.length));
console.log(`${'young'.padEnd(WIDTH)} started   under load   JSON turn, µs              streamed token, µs`);
for (const { name, started, peak, json, burst } of servers) {
  const figures = [`${started.toFixed(0)} MiB`.padEnd(9), `${peak.toFixed(0)} MiB`.padEnd(12)];
  console.log(`${name.padEnd(WIDTH)} ${figures.join(' ')} ${format(summary(json), 0).padEnd(26)} ${format(summary(burst))}`);
}
for (const { stop } of servers) stop();

const server = await start('own');
await send(server.port, kinds.burst, { count: 2_000, callers: CALLERS });
await held('an open stream', STREAMS, () => open(server.port, STREAMS));
let next = 0;
const session = () => `idle ${next++}`;
await send(server.port, kinds.json, { count: 1_000, callers: CALLERS, session });
await held('an idle session of one turn', IDLE, () => send(server.port, kinds.json, { count: IDLE, callers: CALLERS, session }));
process.exit(0);

/** Prints what each of `count` things holds, and ends them. */
async function held(what, count, begin) {
  const before = await server.memory();
  const end = await begin();
  await sleep(500);
  const after = await server.memory();
  const each = (field) => ((after[field] - before[field]) / count / 1024).toFixed(1);
  console.log(`\n${what}: ${each('heap')} KiB of live heap, ${each('rss')} KiB resident, of ${count}`);
  end?.();
  await sleep(500);
}
