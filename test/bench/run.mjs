// Runs the benchmark, prints its rows and writes them as JSON. See README.md.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { kinds, latencies, open, send } from './load.mjs';
import { cpuPer, ratio } from './measure.mjs';
import { prefill } from './prefill.mjs';
import { HERE, startModel, startPlain, startPlugboard } from './servers.mjs';
import { bareNode, fillCompileCache, startToListening } from './start.mjs';
import { format, percentile, summary } from './statistics.mjs';

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rows: { type: 'string' },
    against: { type: 'string' },
    out: { type: 'string', default: 'bench-results.json' },
  },
});
/** Many short rounds: a busy moment of the machine then spoils one of them, and not the median. */
const ROUNDS = options.quick ? 7 : 21;
/** Rounds of paced streams, which take two seconds each however fast the server is. */
const PACED_ROUNDS = options.quick ? 2 : 5;
/** Share of the requests of a full run. */
const SCALE = options.quick ? 0.25 : 0.5;
const CALLERS = 8;
/**
 * Turns of each kind before its first round: V8 compiles meanwhile, on threads whose CPU counts
 * too.
 */
const WARM = options.quick ? { json: 4000, stream: 800 } : { json: 10_000, stream: 3000 };
const TOKENS = 100;
/** Streams that are open at the same time in row 5. */
const STREAMS = 1000;
/** Turns before a caller continues in a new session. */
const TURNS = 20;
const wanted = options.rows?.split(',');
const count = (requests) => Math.round(requests * SCALE);

const folder = mkdtempSync(join(tmpdir(), 'plugboard-bench-'));
const model = await startModel();
const raw = await startPlain('raw-pipe', model.port);
const floor = await startPlain('koa-floor', model.port);
const checkouts = { plugboard: HERE, ...(options.against && { before: resolve(options.against) }) };
const plugboards = [];
for (const [name, checkout] of Object.entries(checkouts)) {
  const sessions = join(folder, `${name}.db`);
  const lengths = Object.fromEntries(Array.from({ length: ROUNDS }, (_, round) => [`short ${round}`, 10]));
  await prefill(checkout, sessions, { ...lengths, long: 10_000 });
  plugboards.push(await startPlugboard(name, { checkout, modelPort: model.port, sessions }));
}
process.on('exit', () => {
  for (const { stop } of [raw, floor, ...plugboards]) stop();
  model.child.kill();
  rmSync(folder, { recursive: true, force: true });
});

const results = [];
const begun = performance.now();
console.log(`Node ${process.version}, ${ROUNDS} rounds of one run; median (lowest to highest)\n`);

await row('1', 'JSON turn, CPU', '≤ 1.15 × R', () =>
  cpuRow(kinds.json, { requests: count(1200), unit: 'µs', servers: [raw, floor, ...plugboards] }),
);
await row('2', 'streamed turn of 100 tokens in a burst, CPU per token', '≤ 0.80 × R', () =>
  cpuRow(kinds.burst, { requests: count(600), units: TOKENS, unit: 'µs', servers: [raw, floor, ...plugboards] }),
);
await row('3', 'streamed turn at 50 tokens/s, 100 callers, CPU per token', '≤ 1.2 × R', () =>
  cpuRow(kinds.paced, {
    requests: 100,
    callers: 100,
    units: TOKENS,
    unit: 'µs',
    servers: [raw, floor, ...plugboards],
    roundCount: PACED_ROUNDS,
  }),
);
await row('4', 'added latency, 1 caller', 'JSON p50 ≤ 0.25 ms; first token p50 ≤ 0.30 ms, p99 ≤ 5 ms', latencyRow);
await row('5', '1,000 open slow streams', '≤ 24 KiB live heap, ≤ 48 KiB resident each; JSON turns ≤ 1.1 × alone', streamsRow);
await row('6', 'turn with one tool call, CPU', '≤ 1.6 × a plain turn', toolRow);
await row(
  '7',
  'durable session turn over SQLite, CPU',
  'JSON ≤ 1.5 × R; streamed ≤ 1.0 × R; 64 at once ≥ 0.5 × the stateless rate',
  sessionRow,
);
await row('8', 'session turn at 10,000 messages, CPU', '≤ 1.1 × at 10 messages', longSessionRow);
await row('9', 'streamed turn of 100 tokens through model-ai-sdk, CPU per token', 'stated beside model-openai', nativeRow);
await row('11', 'start to listening', '≤ 2.5 × `node -e 0`; ≤ 75 MiB resident', startRow);

await row('12', 'step of a coding agent: 150 KB, 60 tools, streamed, CPU', 'CPU ≤ 7 × R', stepRow);

writeFileSync(
  options.out,
  `${JSON.stringify({ node: process.version, rounds: ROUNDS, quick: options.quick, rows: results }, null, 2)}\n`,
);
console.log(`${((performance.now() - begun) / 1000).toFixed(0)} s; written to ${options.out}`);
process.exit(0);

/**
 * Runs one row unless other rows were asked for. Its figures are
 * `{ server, what, median, low, high }`.
 */
async function row(id, title, target, run) {
  if (wanted && !wanted.includes(id)) return;
  console.log(`${id.padEnd(3)}${title} (target: ${target})`);
  const figures = await run();
  for (const { server, what, digits, ...figure } of figures)
    console.log(`   ${server.padEnd(10)} ${format(figure, digits).padEnd(26)} ${what}`);
  console.log();
  results.push({ row: id, title, target, figures: figures.map(({ digits: _, ...figure }) => figure) });
}

/**
 * CPU per unit of each server, and its ratio to R in the same round. @param sessions names the
 * sessions of one round.
 */
async function cpuRow(
  kind,
  { requests, callers = CALLERS, units = 1, unit, servers, sessions = () => undefined, roundCount = ROUNDS },
) {
  const load = () => ({ count: requests, callers, session: sessions() });
  const warming = kind === kinds.paced ? kinds.burst : kind; // the same code, without waiting
  for (const server of servers) await warm(server, warming, sessions());
  const cost = await rounds(roundCount, servers, (server) => cpuPer(server, kind, load()).then((each) => each / units));
  return servers.flatMap(({ name }) => [
    { server: name, what: unit, digits: 1, ...summary(cost.get(name)) },
    ...(name === raw.name ? [] : [{ server: name, what: '× R', ...ratio(cost.get(name), cost.get(raw.name)) }]),
  ]);
}

async function latencyRow() {
  const requests = count(200);
  const servers = [raw, floor, ...plugboards];
  const measured = new Map(servers.map(({ name }) => [name, { json: [], first: [] }]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { name, port } of servers) {
      const json = await latencies(port, kinds.json, requests);
      const burst = await latencies(port, kinds.burst, requests);
      if (round === 0) continue; // warm
      measured.get(name).json.push(json.map(({ end }) => end));
      measured.get(name).first.push(burst.map(({ first }) => first));
    }
  }
  const added = (name, what, share) =>
    summary(
      measured
        .get(name)
        [what].map((all, round) => percentile(all, share) - percentile(measured.get(raw.name)[what][round], share)),
    );
  return servers.slice(1).flatMap(({ name }) => [
    { server: name, what: 'ms over R, JSON p50', ...added(name, 'json', 0.5) },
    { server: name, what: 'ms over R, first token p50', ...added(name, 'first', 0.5) },
    { server: name, what: 'ms over R, first token p99', ...added(name, 'first', 0.99) },
  ]);
}

async function streamsRow() {
  const figures = [];
  const figure = (server, what, value) => figures.push({ server: server.name, what, median: value, low: value, high: value });
  // Memory of servers that have just started: the others still hold pages of earlier rows, which
  // streams would reuse.
  for (const server of await freshServers()) {
    await send(server.port, kinds.burst, { count: 200, callers: CALLERS });
    const before = await server.memory();
    await open(server.port, STREAMS);
    await sleep(500);
    const during = await server.memory();
    figure(server, 'KiB live heap each', (during.heap - before.heap) / STREAMS / 1024);
    figure(server, 'KiB resident each', (during.rss - before.rss) / STREAMS / 1024);
    server.stop();
  }
  const load = { count: count(1000), callers: CALLERS };
  const cost = async (server) => {
    const rounds = [];
    for (let round = 0; round < 7; round++) rounds.push(await cpuPer(server, kinds.json, load));
    return summary(rounds).median;
  };
  for (const server of [raw, floor, ...plugboards]) {
    // Streams too: else their first ones are compiled while the turns beside them are measured.
    for (const kind of [kinds.json, kinds.burst]) await warm(server, kind);
    const close = await open(server.port, STREAMS);
    const meanwhile = await cost(server);
    close();
    await sleep(500);
    figure(server, '× the CPU of a JSON turn alone', meanwhile / (await cost(server)));
  }
  return figures;
}

async function freshServers() {
  const fresh = [await startPlain('raw-pipe', model.port), await startPlain('koa-floor', model.port)];
  for (const [name, checkout] of Object.entries(checkouts)) {
    fresh.push(await startPlugboard(name, { checkout, modelPort: model.port, sessions: join(folder, `${name}-fresh.db`) }));
  }
  return fresh;
}

async function toolRow() {
  const load = { count: count(600), callers: CALLERS };
  const measured = { plain: kinds.json, tool: kinds.tool };
  for (const server of plugboards) for (const kind of Object.values(measured)) await warm(server, kind);
  const cost = await kindRounds(measured, load);
  return plugboards.flatMap(({ name }) => [
    { server: name, what: 'µs', digits: 1, ...summary(cost.get(`${name} tool`)) },
    { server: name, what: '× a plain turn', ...ratio(cost.get(`${name} tool`), cost.get(`${name} plain`)) },
  ]);
}

/** The same model server through model-openai and through a provider package of the AI SDK. */
async function nativeRow() {
  const [own] = plugboards;
  const sessions = join(folder, 'native.db');
  const native = await startPlugboard('ai-sdk', { checkout: HERE, modelPort: model.port, sessions, config: 'native.yaml' });
  const servers = [raw, own, native];
  const figures = await cpuRow(kinds.burst, { requests: count(400), units: TOKENS, unit: 'µs', servers });
  native.stop();
  return figures;
}

async function sessionRow() {
  const requests = count(600);
  const servers = [raw, ...plugboards];
  const json = await cpuRow(kinds.json, { requests, unit: 'µs JSON', servers, sessions: newSessions });
  const burst = await cpuRow(kinds.burst, {
    requests,
    units: TOKENS,
    unit: 'µs per token streamed',
    servers,
    sessions: newSessions,
  });
  const label = (figures, what) => figures.map((figure) => (figure.what === '× R' ? { ...figure, what } : figure));
  return [...label(json, '× R, JSON'), ...label(burst, '× R, streamed'), ...(await rateFigures())];
}

/** Turns per second of 64 sessions at once, as a share of the stateless rate. */
async function rateFigures() {
  const load = { count: count(1000), callers: 64 };
  const figures = [];
  for (const { name, port } of plugboards) {
    const shares = [];
    for (let round = 0; round <= ROUNDS; round++) {
      const stateless = await seconds(() => send(port, kinds.json, load));
      const stateful = await seconds(() => send(port, kinds.json, { ...load, session: newSessions() }));
      if (round > 0) shares.push(stateless / stateful);
    }
    figures.push({ server: name, what: '× the stateless rate, 64 at once', ...summary(shares) });
  }
  return figures;
}

async function longSessionRow() {
  const load = { count: count(200), callers: 1 };
  const cost = new Map(
    plugboards.flatMap(({ name }) => [
      [`${name} short`, []],
      [`${name} long`, []],
    ]),
  );
  for (let round = 0; round < ROUNDS; round++) {
    for (const server of plugboards) {
      for (const [length, key] of [
        ['short', `short ${round}`],
        ['long', 'long'],
      ]) {
        const session = () => key;
        await send(server.port, kinds.recent, { count: 50, callers: 1, session }); // loads it, and fills the view
        cost.get(`${server.name} ${length}`).push(await cpuPer(server, kinds.recent, { ...load, session }));
      }
    }
  }
  return plugboards.flatMap(({ name }) => [
    { server: name, what: 'µs at 10 messages', digits: 1, ...summary(cost.get(`${name} short`)) },
    { server: name, what: 'µs at 10,000 messages', digits: 1, ...summary(cost.get(`${name} long`)) },
    { server: name, what: '× at 10 messages', ...ratio(cost.get(`${name} long`), cost.get(`${name} short`)) },
  ]);
}

/** The same step over the Messages API and over chat completions. */
async function stepRow() {
  const servers = [raw, ...plugboards];
  const requests = count(240);
  const messages = await cpuRow(kinds.messagesStep, { requests, unit: 'µs, Messages API', servers });
  const chat = await cpuRow(kinds.chatStep, { requests, unit: 'µs, chat completions', servers });
  return [...messages, ...chat];
}

async function startRow() {
  const starts = options.quick ? 5 : 15;
  const bare = [];
  const measured = new Map(Object.keys(checkouts).map((name) => [name, []]));
  for (const [name, checkout] of Object.entries(checkouts)) await fillCompileCache(checkout, join(folder, `${name}-start.db`));
  for (let n = 0; n < starts; n++) {
    bare.push(await bareNode());
    for (const [name, checkout] of Object.entries(checkouts))
      measured.get(name).push(await startToListening(checkout, join(folder, `${name}-start.db`)));
  }
  const mib = (all, what) => summary(all.map((one) => one[what] / 1024 / 1024));
  return [
    { server: 'node -e 0', what: 'ms', digits: 0, ...summary(bare) },
    ...Object.keys(checkouts).flatMap((name) => {
      const all = measured.get(name);
      const times = all.map(({ milliseconds }) => milliseconds);
      return [
        { server: name, what: 'ms', digits: 0, ...summary(times) },
        { server: name, what: '× `node -e 0`', ...ratio(times, bare) },
        { server: name, what: 'MiB resident', digits: 1, ...mib(all, 'resident') },
        { server: name, what: 'MiB of it anonymous', digits: 1, ...mib(all, 'anonymous') },
      ];
    }),
  ];
}

/** Names sessions: each caller starts a new one after some turns, so that they stay short. */
function newSessions() {
  const run = Math.random().toString(36).slice(2);
  return (caller, sent) => `${run} ${caller} ${Math.floor(sent / TURNS)}`;
}

/** Measures each server in turn, round by round. */
async function rounds(roundCount, servers, measure) {
  const all = new Map(servers.map(({ name }) => [name, []]));
  for (let round = 0; round < roundCount; round++) {
    for (const server of servers) all.get(server.name).push(await measure(server));
  }
  return all;
}

/** CPU per request of several kinds at each Plugboard, under `<server> <kind>`. */
async function kindRounds(measured, load) {
  const all = new Map();
  for (const { name } of plugboards) for (const kind in measured) all.set(`${name} ${kind}`, []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const server of plugboards) {
      for (const [name, kind] of Object.entries(measured)) {
        all.get(`${server.name} ${name}`).push(await cpuPer(server, kind, load));
      }
    }
  }
  return all;
}

/** Sends so many turns of a kind that the figures after them no longer fall. */
function warm(server, kind, session) {
  return send(server.port, kind, { count: kind.fields.stream ? WARM.stream : WARM.json, callers: CALLERS, session });
}

async function seconds(work) {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}
