import type { TurnCommit } from '@plugboard/kernel/contracts';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { Database } from '../src/database/database.js';
import { ConnectionLost } from '../src/errors/postgres-error.js';
import { ANNA, acquire, loaded, newSchema, openStore, SYSTEM_CLOCK, session, turn } from './open-store.js';
import { realPostgres } from './real-postgres.js';
import { sentStatements } from './sent-statements.js';
import { TcpProxy } from './tcp-proxy.js';

/** The version of the protocol in a message that opens a connection. */
const PROTOCOL_3 = 3 << 16;

/** Runs turns of several sessions at once. */
async function runTurns(
  { store }: Awaited<ReturnType<typeof openStore>>,
  sessions: number,
  turns: number,
  more: Pick<TurnCommit, 'state'> = {},
): Promise<void> {
  const run = async (key: string) => {
    for (let n = 0; n < turns; n++) {
      const { version } = await store.load(session(key));
      const turnId = `turn_${key}_${n}`;
      await store.begin(session(key), { turnId, input: turn(n) });
      await store.commit(session(key), { turnId, expected: version, messages: turn(n), ...more });
    }
  };
  await Promise.all(Array.from({ length: sessions }, (_, n) => run(`s${n}`)));
}

t.test('PG-2 sends nothing that a pooler of transactions refuses', async (t) => {
  const postgres = await realPostgres();
  const proxy = await TcpProxy.start(t, postgres.port);
  const startup: Buffer[] = [];
  proxy.onRequest = (bytes) => {
    if (bytes.length > 8 && bytes.readInt32BE(4) === PROTOCOL_3) startup.push(bytes);
    return true;
  };
  const sent = sentStatements(t);
  const opened = await openStore({ url: proxy.through(postgres.url()), listenUrl: postgres.url() });
  const { store } = opened;
  await runTurns(opened, 2, 2);
  const record = { key: { project: 'acme', route: '/v1/x', key: 'k' }, fingerprint: 'f', result: 'began' } as const;
  await store.commit(session('s0'), { expected: 2, messages: turn(3), idempotency: record });
  await store.fork(session('s0'), 'copy', 2);
  await store.documents.put(session('s0'), 'resp_1', '{}');
  await store.state.change([{ entry: 'a', key: 'b', text: '1', expected: null }]);
  await store.list('acme', { limit: 3, order: 'desc' });
  await store.delete(session('copy'));
  await opened.close();
  t.ok(sent.length > 30);
  t.notOk(
    sent.some(({ named }) => named),
    'no named prepared statement',
  );
  const refused =
    /pg_(try_)?advisory_lock\b|\bLISTEN\b|\bPREPARE\b|\bDECLARE\b|(^|;)\s*SET\s+(?!LOCAL\b)|DISCARD|TEMP(ORARY)? TABLE/i;
  t.strictSame(
    sent.map(({ text }) => text).filter((text) => refused.test(text)),
    [],
  );
  const parameters = new Set(
    startup.flatMap((bytes) =>
      bytes
        .subarray(8)
        .toString()
        .split('\0')
        .filter((_, i) => i % 2 === 0),
    ),
  );
  t.strictSame([...parameters].filter(Boolean).toSorted(), ['application_name', 'client_encoding', 'database', 'user']);
});

t.test('PG-5 a pool of two connections serves many turns at once, and none keeps a connection', async (t) => {
  const postgres = await realPostgres();
  const proxy = await TcpProxy.start(t, postgres.port);
  const opened = await openStore({ url: proxy.through(postgres.url()), listenUrl: postgres.url(), poolSize: 2 });
  t.teardown(opened.close);
  await runTurns(opened, 30, 2);
  t.equal(await opened.store.version(session('s29')), 2);
  t.equal(proxy.opened, 2, 'the lease has one of its own, which is opened by its first renewal');
});

t.test('PG-6 nothing is computed between BEGIN and COMMIT', async (t) => {
  const opened = await openStore();
  t.teardown(opened.close);
  const sent = sentStatements(t);
  await runTurns(opened, 10, 3, { state: [{ entry: 'a', key: 'b', text: undefined }] });
  let transactions = 0;
  for (const client of new Set(sent.map((one) => one.client))) {
    const own = sent.filter((one) => one.client === client);
    for (const [i, one] of own.entries()) {
      const before = own[i - 1];
      if (!before || one.text.startsWith('BEGIN') || !/COMMIT|INSERT|UPDATE/.test(one.text)) continue;
      if (one.text === 'COMMIT') transactions++;
      if (one.text !== 'COMMIT' && !before.text.startsWith('BEGIN')) continue;
      t.ok(one.sentAt - (before.answeredAt ?? 0) <= 1, `${one.text.slice(0, 20)} is sent when the answer before it is there`);
    }
  }
  t.equal(transactions, 30);
});

t.test('a turn is three statements, and a transaction where it stores more than itself', async (t) => {
  const opened = await openStore();
  t.teardown(opened.close);
  await runTurns(opened, 1, 1);
  const sent = sentStatements(t);
  const run = async (n: number, more: Pick<TurnCommit, 'state'>) => {
    const before = sent.length;
    const turnId = `turn_${n}`;
    await acquire(opened.store, turnId);
    await opened.store.begin(ANNA, { turnId, input: turn(n) });
    await opened.store.commit(ANNA, { turnId, expected: n - 1, messages: turn(n), ...more });
    const turns = sent.slice(before).filter(({ text }) => !text.includes('pg_notify')); // the check of LISTEN
    return turns.map(({ text }) => text.trim().split(/\s/)[0]);
  };
  t.strictSame(await run(1, {}), ['WITH', 'WITH', 'WITH'], 'three round trips: the lease, the begin, the commit');
  const state = [{ entry: 'a', key: 'b', text: undefined }];
  t.strictSame(await run(2, { state }), ['WITH', 'WITH', 'BEGIN;', 'WITH', 'DELETE', 'COMMIT']);
});

for (const kind of ['cut', 'silence'] as const) {
  t.test(`PG-7 connections that a proxy has dropped while a model answered (${kind}) cost one retry`, async (t) => {
    const postgres = await realPostgres();
    const proxy = await TcpProxy.start(t, postgres.port);
    const { store, close, logs } = await openStore({ url: proxy.through(postgres.url()), timeout: 400, clock: SYSTEM_CLOCK });
    t.teardown(close);
    await Promise.all([1, 2, 3].map((n) => store.begin(session(`s${n}`), { turnId: `turn_${n}`, input: turn(n) })));
    proxy[kind]();
    const commits = [1, 2, 3].map((n) => store.commit(session(`s${n}`), { turnId: `turn_${n}`, expected: 0, messages: turn(n) }));
    await Promise.all(commits);
    for (const n of [1, 2, 3]) t.same(await loaded(store, session(`s${n}`)), { version: 1, messages: turn(n) });
    t.same(await store.health(), { ok: true });
    t.strictSame(
      logs.filter(({ level }) => level !== 'info' && level !== 'warn'),
      [],
    );
  });
}

t.test('PG-31 after a lost connection a cached history is read again, once', async (t) => {
  const postgres = await realPostgres();
  const proxy = await TcpProxy.start(t, postgres.port);
  const { store, close } = await openStore({ url: proxy.through(postgres.url()), listenUrl: postgres.url() });
  t.teardown(close);
  let turns = 0;
  const leased = async (id = ANNA) => {
    const turnId = `turn_${++turns}`;
    const { version } = await acquire(store, turnId, id);
    await store.abandon(id, turnId);
    return version;
  };
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  t.equal(await leased(), 1);
  proxy.cut();
  await store.version(ANNA);
  t.equal(await leased(), -1, 'the database may be another one');
  t.equal(await leased(), -1, 'it was not read');
  await store.load(ANNA);
  t.equal(await leased(), 1);
  t.equal(await leased(session('ben')), -1);
  proxy.cut();
  await store.version(ANNA);
  await store.load(ANNA);
  t.equal(await leased(), 1);
  t.equal(await leased(session('ben')), -1);
});

t.test('PG-7 PG-10 a statement that runs out of time destroys its connection', async (t) => {
  const postgres = await realPostgres();
  const proxy = await TcpProxy.start(t, postgres.port);
  const options = {
    url: proxy.through(postgres.url()),
    schema: newSchema(),
    poolSize: 1,
    clock: SYSTEM_CLOCK,
    timeout: 200,
    patience: 0,
  };
  const database = new Database(options);
  t.teardown(() => database.close());
  await t.rejects(database.run('SELECT pg_sleep(20)'), ConnectionLost);
  t.strictSame(await database.run('SELECT 1 AS one'), [{ one: 1 }], 'a new connection works');
  t.equal(proxy.opened, 3, 'two attempts, and the new one');
});

t.test('PG-10 limits of a transaction end with it', async (t) => {
  const postgres = await realPostgres();
  const database = new Database({ url: postgres.url(), schema: newSchema(), poolSize: 1, clock: SYSTEM_CLOCK });
  t.teardown(() => database.close());
  const limits = `SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock,
    current_setting('idle_in_transaction_session_timeout') AS idle`;
  t.strictSame(await database.transaction((query) => query(limits)), [{ statement: '9s', lock: '5s', idle: '5s' }]);
  t.strictSame(await database.run(limits), [{ statement: '0', lock: '0', idle: '0' }]);
});

const STATE = { state: [{ entry: 'a', key: 'b', text: '1' }] };
/** What a commit sends, and how the answer ends that says that it is stored. */
const COMMITS = [
  { kind: 'of a turn alone', request: 'WITH own', answer: 'SELECT 1\0', more: {} },
  { kind: 'with more', request: 'COMMIT\0', answer: 'COMMIT\0', more: STATE },
];
for (const { kind, request, answer, more } of COMMITS) {
  t.test(`PG-8 a commit ${kind} stores its turn once, whether its request or its answer is lost`, async (t) => {
    const postgres = await realPostgres();
    const proxy = await TcpProxy.start(t, postgres.port);
    const { store, rows, close } = await openStore({ url: proxy.through(postgres.url()), clock: SYSTEM_CLOCK });
    t.teardown(close);
    let seen = 0;
    const drop = (part: string) => (bytes: Buffer) => !(bytes.includes(part) && seen++ === 0);
    for (const [n, lost] of (['request', 'answer'] as const).entries()) {
      const turnId = `turn_${n}`;
      await store.begin(ANNA, { turnId, input: turn(n) });
      seen = 0;
      if (lost === 'request') proxy.onRequest = drop(request);
      else proxy.onAnswer = drop(answer);
      await store.commit(ANNA, { turnId, expected: n, messages: turn(n), ...more });
      proxy.onRequest = proxy.onAnswer = () => true;
      t.ok(seen > 0);
      t.equal(await store.version(ANNA), n + 1);
      t.strictSame([await rows('record'), await rows('turn')], [n + 1, 0], `${lost}: stored once`);
    }
    seen = 0;
    proxy.onAnswer = drop('COMMIT\0');
    await t.rejects(store.delete(ANNA), { code: 'unknown_outcome' }, 'what cannot be looked for is not repeated');
  });
}

t.test('PG-8 a commit that arrives late is found where the next one fails for it', async (t) => {
  const postgres = await realPostgres();
  const database = new Database({ url: postgres.url(), schema: newSchema(), poolSize: 1, clock: SYSTEM_CLOCK });
  t.teardown(() => database.close());
  for (const found of [true, false]) {
    const errors = [new ConnectionLost(new Error('cut')), new Error('another version')];
    const looks = [false, found];
    const stored = database.once(
      () => Promise.reject(errors.shift()),
      async () => looks.shift() ?? false,
    );
    if (found) t.equal(await stored, undefined);
    else await t.rejects(stored, { message: 'another version' });
    t.strictSame([errors, looks], [[], []]);
  }
});

t.test('PG-11 PG-30 a read-only database is not ready, and ready again by itself', async (t) => {
  const postgres = await realPostgres();
  const name = await postgres.createDatabase();
  const { store, close } = await openStore({ url: postgres.url(name), clock: SYSTEM_CLOCK, lease: 5_000, patience: 200 });
  t.teardown(close);
  const setReadOnly = async (value: 'on' | 'off') => {
    await postgres.query(`ALTER DATABASE ${name} SET default_transaction_read_only = ${value}`);
    await postgres.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
  };
  await store.commit(ANNA, { expected: 0, messages: turn(1) });
  await setReadOnly('on');
  await t.rejects(store.commit(ANNA, { expected: 1, messages: turn(2) }), {
    code: 'read_only',
    message: /is read-only: let `url` name/,
  });
  t.match(await store.health(), { ok: false, reason: /is read-only/ });
  t.same(await loaded(store, ANNA), { version: 1, messages: turn(1) }, 'reading goes on');
  await setReadOnly('off');
  await eventually(async () => (await store.health()).ok);
  await store.commit(ANNA, { expected: 1, messages: turn(2) });
});

t.test('PG-11 two transactions that wait for each other both succeed', async (t) => {
  const postgres = await realPostgres();
  const { schema, query, close } = await openStore();
  t.teardown(close);
  await query('INSERT INTO plugboard.state (entry, key, value) VALUES ($1, $2, $3), ($1, $3, $3)', ['e', 'a', 'b']);
  const database = new Database({ url: postgres.url(), schema, poolSize: 2, clock: SYSTEM_CLOCK });
  t.teardown(() => database.close());
  const both = Promise.withResolvers<void>();
  let locked = 0;
  const change = (first: string, second: string) =>
    database.transaction(async (run) => {
      const add = 'UPDATE plugboard.state SET value = value || $2 WHERE key = $1';
      await run(add, [first, 'x']);
      if (++locked === 2) both.resolve();
      await both.promise;
      await run(add, [second, 'x']);
    });
  await Promise.all([change('a', 'b'), change('b', 'a')]);
  t.strictSame(await query('SELECT value FROM plugboard.state ORDER BY key'), [{ value: 'bxx' }, { value: 'bxx' }]);
  t.match(postgres.log(), 'deadlock detected');
});

t.test('R-071 PG-30 a turn outlives a restart of PostgreSQL, and the server a longer one', async (t) => {
  const postgres = await realPostgres();
  const { store, close, rows } = await openStore({ clock: SYSTEM_CLOCK, lease: 60_000, patience: 10_000 });
  t.teardown(close);
  await store.begin(ANNA, { turnId: 'turn_1', input: turn(1) });
  postgres.stop('immediate');
  const commit = store.commit(ANNA, { turnId: 'turn_1', expected: 0, messages: turn(1) });
  await eventually(async () => !(await store.health()).ok);
  t.match(await store.health(), {
    ok: false,
    reason: /PostgreSQL at 127\.0\.0\.1:\d+ cannot be reached \(.*\): check that it runs, and `url`/,
  });
  postgres.start();
  await commit;
  t.same(await loaded(store, ANNA), { version: 1, messages: turn(1) });
  t.equal(await rows('record'), 1);
  await eventually(async () => (await store.health()).ok);
});
