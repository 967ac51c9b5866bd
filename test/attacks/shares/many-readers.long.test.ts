/**
 * Many readers of the largest thing that is stored, on every route and socket (S-71), on a server
 * with a heap of 256 MiB.
 */
import { setTimeout as wait } from 'node:timers/promises';
import t from 'tap';
import { Flood } from '../support/flood.js';
import { FIRST, HEAVY_REQUESTS, HEAVY_YAML, SECOND, sentBy, storeHeavy } from '../support/heavy-requests.js';
import { ServerProcess } from '../support/server-process.js';

t.setTimeout(600_000);

const READERS = 80;
/** MiB: half of the heap. */
const MEMORY = 128;
/** MiB: resident garbage. V8 fills much of the heap before it collects, and keeps what it got. */
const GARBAGE = 128;
/** Milliseconds in which the readers of one row come again and again. */
const LENGTH = 1_500;

t.test('S-71 many readers of each route and socket stay within the memory for callers', async (t) => {
  const flood = await Flood.create(t);
  const env = { PORT: '0', ATTACKED_URL: flood.modelUrl };
  const yaml = `${HEAVY_YAML}limits: { memory: ${MEMORY}mb }\n`;
  let server = await ServerProcess.start(t, { yaml, heap: 256, env });
  let stored = await storeHeavy(server);
  const start = server.memory();
  for (const name of Object.keys(HEAVY_REQUESTS)) {
    flood.start(
      server,
      Array.from({ length: READERS }, (_, at) => sentBy(at % 2 ? FIRST : SECOND, name, stored)),
    );
    let most = 0;
    for (let waited = 0; waited < LENGTH; waited += 50) {
      await wait(50);
      if (server.running) most = Math.max(most, server.memory());
    }
    const statuses = await flood.stop();
    const growth = Math.round(most - start);
    t.comment(`${name}: +${growth} MiB, ${JSON.stringify(statuses)}`);
    t.ok(server.running, `the server lives after ${name}`);
    if (!server.running) {
      server = await ServerProcess.start(t, { yaml, heap: 256, env });
      stored = await storeHeavy(server);
    }
    t.ok(growth < 1.3 * MEMORY + GARBAGE, `${name}: +${growth} MiB`);
  }
});
