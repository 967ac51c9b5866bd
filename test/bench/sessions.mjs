// Prints what a session costs: turns over SQLite beside stateless ones, long conversations, and
// sessions that idle in memory. See README.md.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SqliteStore } from '../../plugins/store-sqlite/dist/testing/index.js';
import { startModel } from './servers.mjs';

const ROUNDS = Number(process.env.ROUNDS ?? 5);
/** So many turns, and a session is followed by another: it stays short. */
const SHORT = 20;
const LENGTHS = [10, 10_000];
const IDLE = 10_000;

const folder = mkdtempSync(join(tmpdir(), 'plugboard-bench-'));
const path = join(folder, 'sessions.db');
await prefill();
const model = await startModel();
const server = await start();
process.on('exit', () => {
  server.child.kill('SIGKILL');
  model.child.kill();
  rmSync(folder, { recursive: true, force: true });
});

console.log(`Node ${process.version}, ${ROUNDS} rounds; the median, the lowest and the highest\n`);
await memory(); // first, while no other session is in memory
await throughput();
await lengths();
process.exit(0);

async function throughput() {
  console.log('turns per second, and CPU of the server for each');
  let run = 0;
  const kinds = {
    stateless: () => ({}),
    SQLite: (client, turn) => ({ session_id: `run ${run}, client ${client}, ${Math.floor(turn / SHORT)}` }),
  };
  for (const clients of [1, 16, 64]) {
    const turns = clients === 1 ? 1000 : 3000;
    const figures = new Map(Object.keys(kinds).map((kind) => [kind, { rate: [], cpu: [] }]));
    for (let round = -1; round < ROUNDS; round++) {
      for (const [kind, fields] of Object.entries(kinds)) {
        run++;
        const { seconds, cpu } = await measured(() => send(clients, turns, fields));
        if (round < 0) continue; // warm
        figures.get(kind).rate.push(turns / seconds);
        figures.get(kind).cpu.push(cpu / turns);
      }
    }
    for (const [kind, { rate, cpu }] of figures)
      console.log(
        `   ${String(clients).padStart(2)} clients   ${kind.padEnd(10)} ${spread(rate, 0)} turns/s   ${spread(cpu, 0)} µs`,
      );
  }
  console.log();
}

async function lengths() {
  console.log('one client, the model sent the newest 10 messages');
  const cost = new Map(LENGTHS.map((length) => [length, { first: [], warm: [], cpu: [] }]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [length, { first, warm, cpu }] of cost) {
      const session = () => ({ session_id: `length ${length}, ${round}` });
      const loading = await measured(() => send(1, 1, session));
      first.push(loading.seconds * 1000);
      const turns = await measured(() => send(1, 200, session));
      warm.push((turns.seconds * 1000) / 200);
      cpu.push(turns.cpu / 200);
    }
  }
  for (const [length, { first, warm, cpu }] of cost)
    console.log(
      `   ${String(length).padStart(6)} messages   first turn (loads) ${spread(first, 1)} ms   each further ${spread(warm, 2)} ms, ${spread(cpu, 0)} µs of CPU`,
    );
  console.log();
}

async function memory() {
  console.log(`${IDLE} sessions of one turn (about 1 KB of messages) each, idle`);
  await send(16, 2000, () => ({}));
  const before = await server.memory();
  let next = 0;
  await send(16, IDLE, () => ({ session_id: `idle ${next++}` }));
  const active = await server.memory();
  await server.ask('hibernate');
  const asleep = await server.memory();
  const kib = (now, what) => ((now[what] - before[what]) / IDLE / 1024).toFixed(2);
  console.log(`   in memory          ${kib(active, 'heap')} KiB of live heap, ${kib(active, 'rss')} KiB resident each`);
  console.log(`   after hibernation  ${kib(asleep, 'heap')} KiB of live heap, ${kib(asleep, 'rss')} KiB resident each\n`);
}

/**
 * `turns` turns by `clients` at once. @param fields of a request, by its client and that client's
 * number of turns so far.
 */
async function send(clients, turns, fields) {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  let left = turns;
  const client = async (_, number) => {
    for (let turn = 0; left-- > 0; turn++) {
      const body = { model: 'assistant', messages: [{ role: 'user', content: `turn ${turn}` }], ...fields(number, turn) };
      const text = await post(agent, JSON.stringify(body));
      if (!text.includes('token099')) throw new Error(`an answer is not whole: ${text.slice(-200)}`);
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  agent.destroy();
}

function post(agent, text) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    const where = { agent, host: '127.0.0.1', port: server.port, method: 'POST', path: '/v1/chat/completions', headers };
    const sent = request(where, (answer) => {
      let whole = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece) => {
        whole += piece;
      });
      answer.on('end', () => resolve(whole));
      answer.on('error', reject);
    });
    sent.on('error', reject);
    sent.end(text);
  });
}

async function measured(work) {
  const cpu = await server.ask('cpu');
  const start = performance.now();
  await work();
  const seconds = (performance.now() - start) / 1000;
  return { seconds, cpu: (await server.ask('cpu')) - cpu };
}

/** Sessions of so many messages each, one for each round. */
async function prefill() {
  const noTimer = { cancel() {}, refresh() {} };
  const clock = { now: Date.now, monotonic: () => performance.now(), after: () => noTimer };
  const store = new SqliteStore({ path, ttl: 1e12, quotas: { maxSessions: 1e9, maxBytes: 1e12 }, clock, log: console });
  store.start();
  const answer = ' token'.repeat(100);
  for (const length of LENGTHS) {
    for (let round = 0; round < ROUNDS; round++) {
      const id = { project: 'default', agent: 'assistant', key: `length ${length}, ${round}` };
      await Promise.all(
        Array.from({ length: length / 2 }, (_, turn) => {
          const messages = [
            { role: 'user', content: `turn ${turn}` },
            { role: 'assistant', content: answer },
          ];
          return store.commit(id, { expected: turn, messages });
        }),
      );
    }
  }
  store.stop();
}

async function start() {
  const child = fork(fileURLToPath(new URL('./sessions-server.mjs', import.meta.url)), {
    execArgv: ['--expose-gc', `--import=${new URL('./probe.mjs', import.meta.url)}`],
    env: { ...process.env, MODEL_PORT: String(model.port), SESSIONS: path },
    stdio: ['ignore', openSync('/dev/null', 'w'), 'inherit', 'ipc'],
  });
  const [{ port }] = await once(child, 'message');
  const ask = async (question) => {
    child.send(question);
    const [answer] = await once(child, 'message');
    return answer;
  };
  return { child, port, ask, memory: () => ask('memory') };
}

function spread(values, digits) {
  const sorted = values.toSorted((a, b) => a - b);
  const [low, middle, high] = [0, Math.floor(sorted.length / 2), sorted.length - 1].map((i) => sorted[i].toFixed(digits));
  return `${middle} (${low} to ${high})`;
}
