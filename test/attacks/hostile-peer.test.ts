/**
 * Connections in every state of the protocol, misused in every way, while another caller works. Short in `npm test`; with
 * `PLUGBOARD_CHAOS` each pair is played a thousand times. The seed is printed, and `PLUGBOARD_SEED` repeats a run.
 */
import t from 'tap';
import { seeded } from '../chaos/seeded.js';
import { ASSISTANT, TRANSPORTS } from '../support/test-server.js';
import { ACTIONS, HostilePeer, STATES } from './support/hostile-peer.js';
import { Neighbour } from './support/neighbour.js';
import { ServerProcess } from './support/server-process.js';

const ROUNDS = process.env.PLUGBOARD_CHAOS ? 1_000 : 5;
const SEED = Number(process.env.PLUGBOARD_SEED ?? 23);
/** Hostile connections at the same time. */
const PARALLEL = 20;

t.test('S-33 resets, half-closes, unread replies and garbage in any state leave the server alive', async (t) => {
  const server = await ServerProcess.start(t, { yaml: TRANSPORTS + ASSISTANT });
  const forever = new Promise<void>(() => {});
  server.models.respond(async ({ body }) => {
    const [{ content = '' } = {}] = body.messages.slice(-1);
    if (content === 'wait') await forever;
    return content === 'stream' ? { text: ['a', forever.then(() => 'b')] } : { text: ['Hello'] };
  });
  const neighbour = new Neighbour(server);
  const fraction = seeded(SEED);
  const plays = STATES.flatMap((state) =>
    ACTIONS.flatMap((action) => Array.from({ length: ROUNDS }, () => [state, action] as const)),
  );
  plays.sort(() => fraction() - 0.5);
  const played = async () => {
    for (let play = plays.pop(); play !== undefined && server.running; play = plays.pop()) {
      await new HostilePeer({ port: server.port, fraction }).play(...play);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, played));

  t.ok(server.running, `the process lives (seed ${SEED})`);
  t.ok(await server.isHealthy());
  const measured = await neighbour.stop();
  t.comment(`${ROUNDS} rounds, neighbour: ${JSON.stringify(measured)}, peak ${Math.round(server.peakMemory())} MiB`);
  t.same(measured.failures, {}, 'the other caller noticed nothing');
  t.ok(measured.turns > 0);
  t.same(
    server.log.filter(({ level }) => level === 'error' || level === 'fatal'),
    [],
  );
});
