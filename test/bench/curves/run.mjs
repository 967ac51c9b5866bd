// Measures what a turn costs while something grows, and draws it. See ../README.md.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { kinds, send } from '../load.mjs';
import { cpuPer } from '../measure.mjs';
import { HERE, startModel } from '../servers.mjs';
import { chart } from './chart.mjs';
import { curves } from './curves.mjs';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    draw: { type: 'string' },
    out: { type: 'string', default: 'bench-curves.json' },
    svg: { type: 'string', default: join(HERE, 'docs/images/scale.svg') },
  },
});
const ROUNDS = options.quick ? 2 : 5;
/** Milliseconds of CPU that a cell may use in a round, about. */
const ROUND = options.quick ? 100 : 300;
const CALLERS = 4;
const warmed = new Set();

const measured = options.draw ? JSON.parse(readFileSync(options.draw, 'utf8')) : await measure();
writeFileSync(options.svg, chart(measured.curves));
console.log(`Drawn: ${options.svg}`);
process.exit(0);

async function measure() {
  const begun = performance.now();
  const folder = mkdtempSync(join(tmpdir(), 'plugboard-bench-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const model = await startModel();
  process.on('exit', () => model.child.kill());
  const all = [];
  for (const { cells, ...curve } of await curves({ modelPort: model.port, folder, rounds: ROUNDS, quick: options.quick })) {
    const series = await lowest(cells);
    all.push({ ...curve, series });
    console.log(`${curve.title}, CPU of a turn in µs`);
    for (const [name, points] of Object.entries(series)) {
      const figures = points.map(([x, cost]) => `${x}: ${cost.toFixed(0)}`);
      console.log(`   ${name.padEnd(20)} ${figures.join('   ')}`);
    }
  }
  const report = { node: process.version, quick: options.quick, curves: all };
  writeFileSync(options.out, `${JSON.stringify(report, null, 2)}\n`);
  console.log(`${((performance.now() - begun) / 1000).toFixed(0)} s; written to ${options.out}`);
  return report;
}

/** The lowest CPU of each cell, measured in turns. By series, `[x, µs]` in ascending order of x. */
async function lowest(cells) {
  const servers = new Set(cells.map(({ server }) => server));
  for (const server of servers) await warm(server);
  const sizes = new Map();
  const costs = new Map(cells.map((cell) => [cell, Number.POSITIVE_INFINITY]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const cell of cells) {
      const { server, kind, session } = cell;
      const close = await cell.during?.();
      const load = cell.before?.(round);
      if (load) await send(server.port, kind, { callers: 1, ...load });
      if (!sizes.has(cell)) sizes.set(cell, cell.sessionOf ? cell.most : await sizeOf(cell));
      const count = sizes.get(cell);
      const callers = cell.sessionOf ? 1 : CALLERS;
      const cost = await cpuPer(server, kind, { count, callers, session: cell.sessionOf?.(round) ?? session });
      costs.set(cell, Math.min(costs.get(cell), cost));
      close?.();
    }
  }
  const series = {};
  for (const [{ series: name, x }, cost] of costs) {
    series[name] ??= [];
    series[name].push([x, cost]);
  }
  return series;
}

/** Runs turns once at a server, whatever its curves. */
async function warm(server) {
  if (warmed.has(server)) return;
  warmed.add(server);
  await send(server.port, kinds.json, { count: options.quick ? 1_000 : 6_000, callers: 8 });
}

/** The turns of a round, after some that warm the cell. */
async function sizeOf({ server, kind, session, most = 1_000 }) {
  const trial = { count: Math.min(most, 8), callers: CALLERS, session };
  await send(server.port, kind, trial);
  const each = await cpuPer(server, kind, trial);
  const count = Math.max(8, Math.min(most, Math.round((ROUND * 1000) / each)));
  if (!session) await send(server.port, kind, { count, callers: CALLERS });
  return count;
}
