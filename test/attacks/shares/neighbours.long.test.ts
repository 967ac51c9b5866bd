/** An innocent caller beside every kind of request (S-71), on a server with a heap of 256 MiB. */
import t from 'tap';
import { Flood } from '../support/flood.js';
import { HEAVY_REQUESTS, HEAVY_YAML, storeHeavy } from '../support/heavy-requests.js';
import { InnocentRate } from '../support/innocent-rate.js';
import { ServerProcess } from '../support/server-process.js';

t.setTimeout(900_000);

t.test('S-71 beside every kind of request an innocent caller keeps half of its rate', async (t) => {
  const flood = await Flood.create(t);
  const env = { PORT: '0', ATTACKED_URL: flood.modelUrl };
  const server = await ServerProcess.start(t, { yaml: HEAVY_YAML, heap: 256, env });
  const innocent = new InnocentRate(server, await storeHeavy(server), flood);
  for (const name of Object.keys(HEAVY_REQUESTS)) {
    const { share, alone, beside, statuses } = await innocent.beside(name, 0.5);
    t.comment(`${name}: ${Math.round(share * 100)} %, ${beside} of ${alone} a second, ${JSON.stringify(statuses)}`);
    t.ok(share >= 0.5, name);
    t.ok(server.running, `the server runs after ${name}`);
    if (!server.running) break;
  }
  t.comment(`peak ${Math.round(server.peakMemory())} MiB`);
});
