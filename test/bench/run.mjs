// Runs the benchmark and prints its rows. See README.md.
import { setTimeout as sleep } from 'node:timers/promises';
import { kinds, open, send } from './load.mjs';
import { startModel, startServer } from './servers.mjs';

const ROUNDS = Number(process.env.ROUNDS ?? 5);
const CALLERS = 8;
const TOKENS = 100;
const NAMES = ['raw-pipe', 'koa-proxy', 'plugboard'];

const model = await startModel();
const servers = [];
for (const name of NAMES) servers.push(await startServer(name, model.port));
const stop = () => {
  for (const server of servers) server.stop();
  model.child.kill();
};
process.on('exit', stop);

console.log(`Node ${process.version}, ${ROUNDS} rounds, ${CALLERS} callers\n`);
await row('1  JSON turn', 'µs of CPU', kinds.json, 3000, 1, 1.15);
await row('2  streamed turn, burst', 'µs of CPU per token', kinds.burst, 1500, TOKENS, 0.8);
await streams('5  1,000 open slow streams', 1000);
process.exit(0);

/** CPU per unit of each server, and its ratio to R's within the round. */
async function row(title, unit, kind, requests, units, target) {
  for (const server of servers) await send(server.port, kind, requests, CALLERS); // warm
  const cost = new Map(servers.map(({ name }) => [name, []]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const server of servers)
      cost.get(server.name).push((await cpu(server, () => send(server.port, kind, requests, CALLERS))) / requests / units);
  }
  const raw = cost.get('raw-pipe');
  console.log(`${title} (target: ≤ ${target} × R)`);
  for (const [name, each] of cost) {
    const ratios = each.map((value, round) => value / raw[round]);
    console.log(`   ${name.padEnd(10)} ${median(each).toFixed(1).padStart(7)} ${unit}   ${spread(ratios)} × R`);
  }
  console.log();
}

async function streams(title, count) {
  console.log(`${title} (target: ≤ 24 KiB live heap, ≤ 48 KiB resident each; JSON turns meanwhile ≤ 1.1 × alone)`);
  for (const server of servers) {
    const alone = await cpu(server, () => send(server.port, kinds.json, 3000, CALLERS));
    const before = await server.memory();
    const close = await open(server.port, count);
    await sleep(500);
    const during = await server.memory();
    const meanwhile = await cpu(server, () => send(server.port, kinds.json, 3000, CALLERS));
    const kib = (what) => ((during[what] - before[what]) / count / 1024).toFixed(1).padStart(6);
    console.log(
      `   ${server.name.padEnd(10)} ${kib('heap')} KiB live heap ${kib('rss')} KiB resident   JSON turns ${(meanwhile / alone).toFixed(2)} × alone`,
    );
    close();
    await sleep(500);
  }
  console.log();
}

async function cpu(server, work) {
  const before = await server.cpu();
  await work();
  return (await server.cpu()) - before;
}

function median(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}

function spread(values) {
  return `${median(values).toFixed(2)} (${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)})`;
}
