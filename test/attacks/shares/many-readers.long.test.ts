/**
 * Many readers of the largest thing that is stored, on every route and socket (S-71), on a server
 * with a heap of 256 MiB.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { Flood } from '../support/flood.js';
import { FIRST, HEAVY_REQUESTS, HEAVY_YAML, SECOND, sentBy, storeHeavy } from '../support/heavy-requests.js';
import { ServerProcess } from '../support/server-process.js';

t.setTimeout(600_000);

const MIB = 1024 * 1024;
const READERS = 80;
/** MiB. */
const HEAP = 256;
/** MiB: half of the heap. */
const MEMORY = HEAP / 2;
/** MiB above a server that has just started: what callers may make it hold. */
const MOST_LIVE = 1.3 * MEMORY;
/**
 * The same of resident memory, which garbage is a part of: V8 fills its heap up to the limit before
 * it collects all of it, and keeps the pages. Its limit is that of the old generation and three
 * semi-spaces of 64 MiB. What is outside of the heap is live.
 */
const MOST_RESIDENT = HEAP + 3 * 64 + MOST_LIVE;
/** Milliseconds in which the readers of one row come again and again, at least. */
const LENGTH = 1_500;

const LIVE_MEMORY = fileURLToPath(new URL('../support/live-memory.mjs', import.meta.url));

/** The most MiB that were live since the last call. */
async function mostLive(server: ServerProcess): Promise<number> {
  server.stderr = '';
  server.kill('SIGUSR2');
  const { live } = await server.logs('collected');
  return Number(live) / MIB;
}

t.test('S-71 many readers of each route and socket stay within the memory for callers', async (t) => {
  const flood = await Flood.create(t);
  const env = { PORT: '0', ATTACKED_URL: flood.modelUrl, NODE_OPTIONS: `--expose-gc --import=${LIVE_MEMORY}` };
  const yaml = `${HEAVY_YAML.replace('level: warn', 'level: info')}limits: { memory: ${MEMORY}mb }\n`;
  const start = async () => {
    const server = await ServerProcess.start(t, { yaml, heap: HEAP, env });
    const before = { live: await mostLive(server), resident: server.memory() };
    return { server, before, stored: await storeHeavy(server) };
  };
  let { server, before, stored } = await start();
  const used = async () => (await server.status()).limits.find(({ name }) => name === 'memory of callers')?.used;
  for (const name of Object.keys(HEAVY_REQUESTS)) {
    // What the row before began is over, but for responses that can be resumed.
    for (let waited = 0; waited < 5_000 && (await used()) !== 0; waited += 200) await wait(200);
    let answers = 0;
    let live = 0;
    let resident = 0;
    // Longer on a busy machine: until a reader has got an answer.
    for (let length = LENGTH; answers === 0 && length < 10_000 && server.running; length *= 2) {
      flood.start(
        server,
        Array.from({ length: READERS }, (_, at) => sentBy(at % 2 ? FIRST : SECOND, name, stored)),
      );
      for (const until = performance.now() + length; performance.now() < until; ) {
        await wait(50);
        if (server.running) resident = Math.max(resident, server.memory());
      }
      if (server.running) live = Math.max(live, await mostLive(server));
      for (const count of Object.values(await flood.stop())) answers += count;
    }
    const grown = { live: Math.round(live - before.live), resident: Math.round(resident - before.resident) };
    t.comment(`${name}: live +${grown.live} MiB, resident +${grown.resident} MiB, ${answers} answers`);
    t.ok(server.running, `the server lives after ${name}`);
    t.ok(answers > 0, `${name} is answered`);
    t.ok(grown.live < MOST_LIVE, `${name}: live +${grown.live} MiB`);
    t.ok(grown.resident < MOST_RESIDENT, `${name}: resident +${grown.resident} MiB`);
    if (!server.running) ({ server, before, stored } = await start());
  }
});
