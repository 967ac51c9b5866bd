import { eventually } from '@plugboard/testing';
/**
 * Connections in every state of the protocol, misused in every way, with and without a token, while
 * another caller works. In the soak run some peers send one byte a second. The seed is printed,
 * and `PLUGBOARD_SEED` repeats a run.
 */
import t from 'tap';
import { LIVE_TRANSPORTS } from '../../support/live.js';
import { LENGTH, rounds } from '../../support/rounds.js';
import { seeded } from '../../support/seeded.js';
import { ASSISTANT } from '../../support/test-server.js';
import { ACTIONS, HostilePeer, STATES } from '../support/hostile-peer.js';
import { Neighbour } from '../support/neighbour.js';

import { type BudgetStatus, ServerProcess } from '../support/server-process.js';

/** How often each pair of state and misuse is played. */
const ROUNDS = rounds({ short: 1, long: 10, soak: 1_000 });
const SEED = Number(process.env.PLUGBOARD_SEED ?? 23);
/** Milliseconds; the soak run takes about half an hour. */
const LIMIT = LENGTH === 'soak' ? 3_600_000 : 240_000;
/** Hostile connections at the same time. */
const PARALLEL = 20;
/** The heap limit in MiB. The budgets follow from it, so that what grows beyond them shows soon. */
const HEAP = 256;
/** Growth of resident memory in MiB: the heap, and what the allocator keeps. */
const GROWTH = 500;

const [HOSTILE, INNOCENT] = ['token-of-a-hostile-peer', 'token-of-the-neighbour'];
const TOKENS = `auth: { bearer: { tokens: [
  { name: hostile, project: default, token: ${HOSTILE} }, { name: neighbour, project: default, token: ${INNOCENT} } ] } }\n`;

/** A fragment of the large answer. It does not fit into the buffers of a connection many times. */
const MUCH = Array<string>(300).fill('much '.repeat(2_000));

/** What the server says it holds, apart from its open connections. */
async function held(server: ServerProcess): Promise<readonly BudgetStatus[]> {
  const { limits } = await server.status();
  const lasting = ['connections'];
  return limits.filter(({ name, used }) => !lasting.includes(name) && !name.startsWith('log') && used > 0);
}

t.setTimeout(LIMIT);

t.test(
  'S-33 resets, half-closes, unread replies and garbage in any state harm no other request',
  { timeout: LIMIT },
  async (t) => {
    const server = await ServerProcess.start(t, { yaml: LIVE_TRANSPORTS + ASSISTANT + TOKENS, heap: HEAP });
    const forever = new Promise<void>(() => {});
    server.models.respond(async ({ body }) => {
      const said = JSON.stringify(body.messages.at(-1)?.content);
      if (said.includes('wait')) await forever;
      if (said.includes('much')) return { text: MUCH };
      return said.includes('stream') ? { text: ['a', forever.then(() => 'b')] } : { text: ['Hello'] };
    });
    const neighbour = new Neighbour(server, { token: INNOCENT });
    const fraction = seeded(SEED);
    const plays = STATES.flatMap((state) =>
      ACTIONS.flatMap((action) => Array.from({ length: ROUNDS }, () => [state, action] as const)),
    );
    plays.sort(() => fraction() - 0.5);
    await eventually(() => neighbour.turns > 0);
    const before = server.memory();
    const played = async () => {
      for (let play = plays.pop(); play !== undefined && server.running; play = plays.pop()) {
        const token = fraction() < 0.75 ? { token: HOSTILE } : {};
        await new HostilePeer({ port: server.port, fraction, slow: LENGTH === 'soak' ? 0.01 : 0, ...token }).play(...play);
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, played));

    t.ok(server.running, `the process lives (seed ${SEED})`);
    t.ok(await server.isHealthy());
    const measured = await neighbour.stop();
    const growth = Math.round(server.peakMemory() - before);
    t.comment(`${ROUNDS} rounds, neighbour: ${JSON.stringify(measured)}, peak +${growth} MiB`);
    t.same(measured.failures, {}, 'the other caller noticed nothing');
    t.ok(measured.turns > 0);
    t.ok(growth < GROWTH, `memory grew by ${growth} MiB`);
    t.ok(await eventually(async () => (await held(server)).length === 0), 'nothing of the hostile connections is left');
    t.same(
      server.log.filter(({ level }) => level === 'error' || level === 'fatal'),
      [],
    );
  },
);
