/**
 * Several servers over one PostgreSQL under kills, pauses and lost connections: the journals of the
 * clients are compared with what is stored, in the manner of Jepsen.
 */
import { globSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { ModelServer } from '@plugboard/testing';
import t from 'tap';
import { programMissing } from '../../../plugins/store-postgres/test/real-postgres.js';
import { rounds } from '../../support/rounds.js';
import { seeded } from '../../support/seeded.js';
import { check } from '../checker.js';
import { modelOf } from '../known-turns.js';
import { Cluster } from './cluster.js';
import { startCounter } from './counter.js';
import { Disturber } from './disturber.js';
import { Journal, outOfOrder, withAnswers } from './journal.js';
import { ReplicaClient, Room } from './replica-client.js';

const SERVERS = 3;
/** Acknowledged turns. */
const TURNS = Number(process.env.PLUGBOARD_TURNS ?? rounds({ short: 20, long: 120, soak: 10_000 }));
const SEED = Number(process.env.PLUGBOARD_SEED ?? 46);
/** In long games more clients play at once. */
const ROOMS = Math.min(48, 8 + Math.floor(TURNS / 100));
/** Milliseconds. */
const LIMIT = 300_000 + TURNS * 500;
t.setTimeout(LIMIT);

/** One server is always an hour ahead (PG-26). */
const [FAKETIME] = globSync('/usr/lib/*/faketime/libfaketime.so.1');
if (!FAKETIME) throw programMissing('libfaketime', 'faketime');
const AN_HOUR_AHEAD = { LD_PRELOAD: FAKETIME, FAKETIME: '+1h', FAKETIME_DONT_FAKE_MONOTONIC: '1' };

t.test(
  `PG-7 PG-14 PG-17 PG-19 PG-26 ${TURNS} turns on ${SERVERS} servers that fail: none lost, doubled or out of order`,
  async (t) => {
    t.setTimeout(LIMIT);
    t.comment(`PLUGBOARD_SEED=${SEED} PLUGBOARD_TURNS=${TURNS}`);
    const random = seeded(SEED);
    const began = performance.now();
    const models = await ModelServer.start();
    t.teardown(() => models.close());
    const counter = await startCounter(t);
    const journal = new Journal();
    /** Of each turn, what its model requests lacked: fewest, over all of them. */
    const forgotten = new Map<string, readonly string[]>();
    models.respond(({ body }) => {
      const texts = body.messages.filter(({ role }) => role === 'user').map(({ content }) => String(content));
      const text = texts.at(-1) ?? '';
      const missing = journal.missingIn(texts);
      if (missing.length <= (forgotten.get(text)?.length ?? Number.POSITIVE_INFINITY)) forgotten.set(text, missing);
      return modelOf(body, () => (random() < 0.1 ? wait(random() < 0.03 ? random() * 3_000 : random() * 10) : Promise.resolve()));
    });
    const cluster = await Cluster.start(t, {
      servers: SERVERS,
      env: { MODEL_URL: models.url, COUNTER_URL: counter.url },
      envOf: (index): Record<string, string> => (index === SERVERS - 1 ? AN_HOUR_AHEAD : {}),
    });
    const rooms = Array.from({ length: ROOMS }, (_, n) => new Room(`room-${n}`, n === 0 ? 'keeper' : 'assistant'));
    // Three in each session, two of them with keys; of the agent that keeps what it was asked, one
    // without.
    const clients = rooms.flatMap((room, n) =>
      (n === 0 ? [false] : [true, false, true]).map(
        (hasKeys, i) => new ReplicaClient(`client-${n}-${i}-`, room, hasKeys, cluster, journal, random),
      ),
    );

    const disturber = new Disturber(cluster, random);
    const disturbing = disturber.run();
    disturbing.catch(() => {}); // thrown below
    const play = async (client: ReplicaClient) => {
      while (journal.acknowledged < TURNS) await client.turn();
    };
    await Promise.all(clients.map(play));
    disturber.stop();
    await disturbing;
    const seconds = Math.round((performance.now() - began) / 1000);

    await Promise.all(cluster.servers.map((server) => server.ready()));
    // Every session takes the next turn, which settles calls that an interrupted one has left: else
    // this does not end.
    await Promise.all(
      clients.map(async (client) => {
        for (const session of client.room.sessions) while ((await client.turn(session)).saw !== 'end');
      }),
    );
    t.strictSame(
      await Promise.all(cluster.servers.map((server) => server.stop())),
      cluster.servers.map(() => 0),
      'every server ends in order',
    );

    const agents = new Map(
      journal.attempts.map(({ session }) => [session, session.startsWith('room-0') ? 'keeper' : 'assistant']),
    );
    const { kept: stored, leases } = await cluster.read(agents);
    const { kept, begun } = withAnswers(stored, journal.attempts);
    const keepers = new Set([...agents].flatMap(([session, agent]) => (agent === 'keeper' ? [session] : [])));
    const { acknowledged, keptUnacknowledged, keptInput, ...faults } = check(journal.attempts, kept, keepers);
    const order = outOfOrder(journal.attempts, kept);
    const ended = journal.attempts.filter(({ saw }) => saw === 'end');
    const actedTwice = [...counter.counts].filter(([, count]) => count > 1).map(([text]) => text);
    const neverActed = ended.filter(({ text }) => text.endsWith(' count') && !counter.counts.has(text)).map(({ text }) => text);
    const outcomes = new Map<number, number>();
    for (const client of clients)
      for (const [status, count] of client.outcomes) outcomes.set(status, (outcomes.get(status) ?? 0) + count);
    t.comment(
      JSON.stringify({
        seed: SEED,
        seconds,
        faults: disturber.counts,
        sessions: agents.size,
        turns: journal.attempts.length,
        acknowledged,
        keptUnacknowledged,
        keptInput,
        keptBegun: begun,
        repeated: clients.reduce((sum, { repeated }) => sum + repeated, 0),
        refusals: Object.fromEntries(outcomes),
        acted: counter.counts.size,
        lost: faults.lost.length,
        doubled: faults.duplicated.length + actedTwice.length,
        outOfOrder: faults.disordered.length + order.length,
      }),
    );
    const none = { lost: [], duplicated: [], half: [], disordered: [], unasked: [], invalid: [] };
    t.strictSame(faults, none, 'the journals agree with what is stored');
    t.strictSame(order, [], 'in real time, across servers and clients');
    t.strictSame(actedTwice, [], 'no tool acted twice for a turn');
    t.strictSame(neverActed, [], 'no acknowledged turn lacks what its tool did');
    t.strictSame(
      ended.flatMap(({ text }) => forgotten.get(text) ?? []),
      [],
      'the model receives everything that was acknowledged before',
    );
    t.strictSame(
      clients.flatMap((client) => client.faults),
      [],
      'each client got the answer to what it had said',
    );
    t.equal(leases, 0, 'no turn keeps a lease');
  },
);
