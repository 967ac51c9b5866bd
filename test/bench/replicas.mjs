// Prints what servers over one PostgreSQL do: turns per second with one, two and three of them,
// whose CPU that takes, and the statements of a turn. See README.md.
import { readdirSync, readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { realPostgres } from '../../plugins/store-postgres/test/real-postgres.ts';
import { exchange, kinds } from './load.mjs';
import { HERE, startModel, startPlugboard } from './servers.mjs';
import { format, summary } from './statistics.mjs';

const ROUNDS = Number(process.env.ROUNDS ?? 3);
const TURNS = Number(process.env.TURNS ?? 3000);
const CALLERS = 32;
/** So many turns, and a session is followed by another: it stays short. */
const SHORT = 20;
/** Ticks of /proc per second. */
const TICKS = 100;

const postgres = await realPostgres();
// As in operation: a commit is on the disk.
await postgres.query('ALTER SYSTEM SET fsync = on');
await postgres.query('SELECT pg_reload_conf()');
const [{ pid }] = await postgres.query('SELECT pg_backend_pid() AS pid');
const postmaster = Number(statOf(pid)[1]);
const model = await startModel();
process.env.DATABASE_URL = postgres.url();

console.log(
  `Node ${process.version}, ${ROUNDS} rounds of ${TURNS} turns, ${CALLERS} callers; the median, the lowest and the highest\n`,
);
for (const count of [1, 2, 3]) await throughput(count);
await statements();
process.exit(0);

async function start(count, schema) {
  process.env.SCHEMA = schema;
  const options = { checkout: HERE, modelPort: model.port, config: 'replicas.yaml' };
  const servers = [];
  for (let n = 0; n < count; n++) servers.push(await startPlugboard(`server ${n + 1}`, options));
  return servers;
}

/** Each turn of a session is sent to the next server. */
async function throughput(count) {
  const servers = await start(count, `bench_${count}`);
  const rates = [];
  const used = { servers: [], PostgreSQL: [], model: [], callers: [] };
  for (let round = -1; round < ROUNDS; round++) {
    const cpu = async () => ({
      servers: (await Promise.all(servers.map((server) => server.cpu()))).reduce((sum, one) => sum + one, 0),
      PostgreSQL: cpuOf(({ parent }) => parent === postmaster),
      model: cpuOf(({ pid }) => pid === model.child.pid),
      callers: process.cpuUsage().user + process.cpuUsage().system,
    });
    const before = await cpu();
    const began = performance.now();
    await send(servers, `${count} servers, round ${round}`, TURNS);
    const seconds = (performance.now() - began) / 1000;
    const after = await cpu();
    if (round < 0) continue; // warm
    rates.push(TURNS / seconds);
    for (const name of Object.keys(used)) used[name].push((after[name] - before[name]) / TURNS);
  }
  for (const server of servers) server.stop();
  const parts = Object.entries(used).map(([name, values]) => `${name} ${format(summary(values), 0)}`);
  console.log(`${count} servers   ${format(summary(rates), 0)} turns/s   µs of CPU a turn: ${parts.join(', ')}`);
}

async function send(servers, name, turns) {
  const agent = new Agent({ keepAlive: true, maxSockets: CALLERS });
  let left = turns;
  const caller = async (_, number) => {
    for (let turn = 0; left-- > 0; turn++) {
      const session_id = `${name}, caller ${number}, ${Math.floor(turn / SHORT)}`;
      const { port } = servers[(number + turn) % servers.length];
      const { text } = await exchange(agent, port, JSON.stringify({ ...kinds.json.fields, session_id }), kinds.json);
      if (!kinds.json.complete(text)) throw new Error(`incomplete answer: ${text.slice(-300)}`);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  agent.destroy();
}

/** What /proc says of a process, from its state on. */
function statOf(pid) {
  return readFileSync(`/proc/${pid}/stat`, 'utf8').replace(/.*\) /, '').split(' ');
}

/** Microseconds of CPU of processes that run. */
function cpuOf(isMeant) {
  let ticks = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const fields = statOf(pid);
      if (isMeant({ pid: Number(pid), parent: Number(fields[1]) })) ticks += Number(fields[11]) + Number(fields[12]);
    } catch {} // it has ended meanwhile
  }
  return (ticks / TICKS) * 1e6;
}

/** What PostgreSQL logs of turns of one session: each statement is one round trip. */
async function statements() {
  const [first, second] = await start(2, 'bench_statements');
  const turns = 10;
  await send([first, second], 'warm', 64);
  await postgres.query("ALTER SYSTEM SET log_statement = 'all'");
  await postgres.query('SELECT pg_reload_conf()');
  for (const [name, servers] of [
    ['at one server', [first]],
    ['at two servers in turn', [first, second]],
  ]) {
    const before = postgres.log().length;
    const agent = new Agent({ keepAlive: true });
    for (let turn = 0; turn < turns; turn++) {
      const body = JSON.stringify({ ...kinds.json.fields, session_id: `statements ${name}` });
      await exchange(agent, servers[turn % servers.length].port, body, kinds.json);
    }
    agent.destroy();
    const sent = postgres
      .log()
      .slice(before)
      .matchAll(/LOG: {2}(?:statement|execute [^:]*): (.*?)(?=\n\d{4}-|$)/gs);
    const counts = Object.entries(
      Object.groupBy(
        Array.from(sent, ([, text]) => text.trim().split(/\s+/).slice(0, 5).join(' ')),
        (text) => text,
      ),
    );
    const total = counts.reduce((sum, [, { length }]) => sum + length, 0);
    console.log(`\n${(total / turns).toFixed(1)} round trips a turn ${name}, renewals of the lease included`);
    for (const [text, { length }] of counts) console.log(`  ${(length / turns).toFixed(1)}  ${text} …`);
  }
}
