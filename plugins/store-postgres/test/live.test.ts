import type { Clock } from '@plugboard/kernel';
import { eventually, ManualClock } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { NEVER, openStore, SYSTEM_CLOCK } from './open-store.js';
import { realPostgres } from './real-postgres.js';
import { sentStatements } from './sent-statements.js';
import { TcpProxy } from './tcp-proxy.js';

/** Two servers, the first behind a proxy. */
async function twoServers(t: Test, clock: Clock = SYSTEM_CLOCK) {
  const postgres = await realPostgres();
  const proxy = await TcpProxy.start(t, postgres.port);
  const settings = { clock, patience: 0 };
  const one = await openStore({ ...settings, url: proxy.through(postgres.url()), listenUrl: postgres.url() });
  const two = await openStore({ ...settings, schema: one.schema });
  for (const { close } of [one, two]) t.teardown(close);
  return { one, two, proxy };
}

/** Collects what a reader gets, by offer. */
function collect(t: Test, { store }: Awaited<ReturnType<typeof openStore>>, topic: string) {
  const reading = new AbortController();
  const found = new Map<string, (string | undefined)[]>();
  const read = async () => {
    for await (const { offer, text } of store.shared.read(topic, reading.signal)) {
      found.set(offer, [...(found.get(offer) ?? []), text]);
    }
  };
  const reader = read();
  t.teardown(() => {
    reading.abort();
    return reader;
  });
  return found;
}

t.test('PG-20 nothing is written of an offer that no other server reads', async (t) => {
  const { one, two } = await twoServers(t);
  const sent = sentStatements(t);
  const withdraw = one.store.shared.offer('topic', async function* () {
    yield 'never';
  });
  await eventually(() => sent.filter(({ text }) => text.includes('interest')).length >= 2);
  withdraw();
  t.ok(sent.every(({ text }) => !/INSERT|DELETE/.test(text)));
  t.strictSame([await two.rows('interest'), await two.rows('live')], [0, 0]);
});

t.test('PG-20 texts that were lost in a crash of PostgreSQL come again, as another offer', async (t) => {
  const { one, two } = await twoServers(t);
  const more = Promise.withResolvers<void>();
  const withdraw = one.store.shared.offer('topic', async function* () {
    yield 'first';
    await more.promise;
    yield 'second';
  });
  const found = collect(t, two, 'topic');
  await eventually(() => found.size === 1);
  await one.query('DELETE FROM plugboard.live; DELETE FROM plugboard.interest');
  await eventually(() => [...found.values()][0]?.length === 2);
  more.resolve();
  await eventually(() => [...found.values()][1]?.length === 3);
  withdraw();
  t.strictSame(
    [...found.values()],
    [
      ['first', undefined],
      ['first', 'second', undefined],
    ],
  );
});

t.test('PG-20 an offer goes on when the database is back, and a long one waits for its rows', async (t) => {
  const { one, two, proxy } = await twoServers(t);
  const long = 'x'.repeat(300_000);
  const cut = Promise.withResolvers<void>();
  let opened = 0;
  const withdraw = one.store.shared.offer('topic', async function* (signal) {
    yield long;
    if (opened++ > 0) return;
    await cut.promise;
    yield 'lost';
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
  });
  const found = collect(t, two, 'topic');
  await eventually(() => found.size === 1);
  proxy.onRequest = () => false;
  proxy.cut();
  cut.resolve();
  await eventually(async () => !(await one.store.health()).ok || opened > 1);
  proxy.onRequest = () => true;
  await eventually(() => [...found.values()].some((texts) => texts.length === 2 && texts[0] === long && opened > 1));
  t.ok([...found.values()].every((texts) => !texts.includes('lost')));
  withdraw();
});

t.test('a reader, and a right, that end while the database is away leave nothing behind', async (t) => {
  const clock = new ManualClock();
  const { one, two, proxy } = await twoServers(t, clock);
  const right = await one.store.shared.hold('key', NEVER);
  const reader = one.store.shared.read('topic', NEVER)[Symbol.asyncIterator]();
  let failure: unknown;
  reader.next().catch((error: unknown) => {
    failure = error;
  });
  await eventually(async () => (await two.rows('interest')) === 1);
  proxy.onRequest = () => false;
  proxy.cut();
  await eventually(() => {
    clock.advance(250);
    return failure !== undefined;
  });
  t.match(failure, { code: 'unreachable' });
  await right.release();
  t.equal(await two.rows('hold'), 1);
  proxy.onRequest = () => true;
  await eventually(async () => {
    clock.advance(1_000);
    return (await two.rows('hold')) === 0;
  });
  await (await two.store.shared.hold('key', NEVER)).release();
});
