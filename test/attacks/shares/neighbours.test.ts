/** The short form of neighbours.long.test.ts, which measures every route. */
import t from 'tap';
import { Flood } from '../support/flood.js';
import { HEAVY_YAML, storeHeavy } from '../support/heavy-requests.js';
import { InnocentRate } from '../support/innocent-rate.js';
import { assertComplete } from '../support/route-names.js';
import { ServerProcess } from '../support/server-process.js';

t.test('S-71 the table of heavy requests has every route of the distribution', assertComplete);

t.test('S-71 two callers that repeat one GET leave another caller its share', async (t) => {
  const flood = await Flood.create(t);
  const env = { PORT: '0', ATTACKED_URL: flood.modelUrl };
  const server = await ServerProcess.start(t, { yaml: HEAVY_YAML, heap: 256, env });
  const innocent = new InnocentRate(server, await storeHeavy(server), flood);
  // Half of its rate on a machine that does nothing else; without shares it was 4 %.
  const { share, alone, beside, statuses } = await innocent.beside('GET /v1/conversations/:id/items/:item', 0.3);
  t.comment(`${Math.round(share * 100)} %, ${beside} of ${alone} a second, ${JSON.stringify(statuses)}`);
  t.ok(share >= 0.3);
});
