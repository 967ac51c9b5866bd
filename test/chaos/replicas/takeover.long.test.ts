/**
 * The session of a server that is gone goes on at another one, and turns of other servers can be
 * cancelled. Prints how long each took.
 */
import { eventually, ModelServer } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { startPgBouncer } from '../../../plugins/store-postgres/test/real-pgbouncer.js';
import { type ClientOutcome, send } from '../client.js';
import { modelOf, textOfTurn } from '../known-turns.js';
import { Cluster, type ClusterServer, LEASE } from './cluster.js';
import { startCounter } from './counter.js';

t.setTimeout(240_000);

/** Two servers, and a model that waits in the first request of turns that are held. */
async function start(t: Test, databasePort?: number) {
  const models = await ModelServer.start();
  t.teardown(() => models.close());
  const counter = await startCounter(t);
  const asked = new Map<string, () => void>();
  const held = new Map<string, Promise<void>>();
  models.respond(async ({ body }) => {
    const text = String(body.messages.findLast(({ role }) => role === 'user')?.content);
    asked.get(text)?.();
    await held.get(text);
    return modelOf(body, () => Promise.resolve());
  });
  /** Holds the turn of that text. Resolves when the model is asked. */
  const hold = (text: string) => {
    const isAsked = Promise.withResolvers<void>();
    const isReleased = Promise.withResolvers<void>();
    asked.set(text, isAsked.resolve);
    held.set(text, isReleased.promise);
    return { asked: isAsked.promise, release: isReleased.resolve };
  };
  const env = { MODEL_URL: models.url, COUNTER_URL: counter.url };
  const cluster = await Cluster.start(t, { servers: 2, env, ...(databasePort !== undefined && { databasePort }) });
  const [first, second] = cluster.servers;
  if (!first || !second) throw new Error('no servers');
  return { cluster, first, second, counter, hold };
}

const secondsSince = (start: number) => Number(((performance.now() - start) / 1000).toFixed(2));

interface Loss {
  /** What befalls the server of the turn. */
  befall(server: ClusterServer, release: () => void): unknown;
  /** What ends it, when the other server has gone on. */
  recover(server: ClusterServer): unknown;
  /** What the client of the first turn saw. */
  readonly saw: ClientOutcome['saw'];
}

const LOSSES: Readonly<Record<string, Loss>> = {
  SIGTERM: {
    befall(server, release) {
      server.victim.signal('SIGTERM');
      release();
    },
    async recover(server) {
      await server.victim.exit();
      await server.start();
    },
    saw: 'end',
  },
  'kill -9': { befall: (server) => server.kill(), recover: (server) => server.start(), saw: 'nothing' },
  SIGSTOP: {
    befall: (server) => server.victim.signal('SIGSTOP'),
    recover: (server) => server.victim.signal('SIGCONT'),
    saw: 'refusal',
  },
  'cut network': {
    befall(server) {
      server.proxy.isSilent = true;
      server.proxy.silence();
    },
    async recover(server) {
      server.proxy.isSilent = false;
      server.proxy.cut();
    },
    saw: 'refusal',
  },
};

t.test('PG-13 PG-17 a session goes on at another server after the loss of its own', async (t) => {
  const { cluster, first, second, counter, hold } = await start(t);
  const seconds: Record<string, number> = {};
  const sessions = new Map<string, string[]>();
  for (const [name, { befall, recover, saw }] of Object.entries(LOSSES)) {
    const session = name.replaceAll(/\W/g, '-');
    const [lost, next] = [textOfTurn(session, 1, 'count'), textOfTurn(session, 2, 'plain')];
    const turn = { agent: 'assistant', session, stream: true };
    const { asked, release } = hold(lost);
    const before = send({ ...turn, url: first.url, text: lost });
    await asked;
    const start = performance.now();
    await befall(first, release);
    await eventually(async () => (await send({ ...turn, url: second.url, text: next, key: next })).saw === 'end');
    seconds[name] = secondsSince(start);
    await recover(first);
    release();
    t.equal((await before).saw, saw, `${name}: what the first client saw`);
    await eventually(async () => (await send({ ...turn, session: 'warm', url: first.url, text: 'Hi' })).saw === 'end');
    t.equal(counter.counts.get(lost) ?? 0, saw === 'end' ? 1 : 0, `${name}: no tool starts after the loss`);
    sessions.set(session, saw === 'end' ? [lost, next] : [next]);
  }
  t.comment(JSON.stringify({ lease: LEASE, 'seconds until the next turn has ended': seconds }));
  await Promise.all(cluster.servers.map((server) => server.stop()));
  const { kept, leases } = await cluster.read([...sessions.keys()].map((key) => [key, 'assistant']));
  for (const [session, texts] of sessions) {
    const users = kept.get(session)?.messages.flatMap(({ role, content }) => (role === 'user' ? [content] : []));
    t.strictSame(users, texts, session);
  }
  t.equal(leases, 0);
});

for (const listens of [true, false]) {
  const how = listens ? 'with LISTEN' : 'without LISTEN, behind PgBouncer in transaction mode';
  t.test(`PG-2 PG-18 a response is cancelled at another server, ${how}`, async (t) => {
    const { first, second, hold } = await start(t, listens ? undefined : (await startPgBouncer(t)).port);
    const seconds: number[] = [];
    for (let n = 0; n < 5; n++) {
      const text = textOfTurn('ann', n, 'plain');
      const { asked, release } = hold(text);
      const response = await fetch(`${first.url}/v1/responses`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'assistant', input: text, stream: true }),
      });
      let received = '';
      const [, id] = await asked.then(async () => {
        const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
        while (!/"id":"(resp_[^"]+)"/.test(received)) received += (await reader?.read())?.value ?? '';
        const start = performance.now();
        const found = /"id":"(resp_[^"]+)"/.exec(received) ?? [];
        const reply = await fetch(`${second.url}/v1/responses/${found[1]}/cancel`, { method: 'POST' });
        t.equal(reply.status, 200, await reply.text());
        for (;;) {
          const { done, value = '' } = (await reader?.read()) ?? { done: true };
          received += value;
          if (done) break;
        }
        seconds.push(secondsSince(start));
        return found;
      });
      t.ok(id);
      t.match(received, /response\.incomplete/);
      release();
    }
    t.comment(JSON.stringify({ 'seconds until a cancel has reached the other server': seconds }));
  });
}
