import assert from 'node:assert/strict';
import type { Message } from '../agent/message.js';
import type { IdempotencyKey, IdempotencyRecord } from '../agent/points/idempotency-store.js';
import { type SessionId, type SessionStore, VersionConflict } from '../agent/points/session-store.js';
import type { ManualClock } from './clock.js';
import { type ContractCase, soon } from './contract.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

export interface OpenedStore {
  readonly store: SessionStore;
  /** Lets go of what was opened. */
  close?(): Promise<void> | void;
}

export interface SessionStoreContractOptions {
  /** The clock that the stores run on, where they do not run on one of their own: expiry is then pinned down too. */
  readonly clock?: ManualClock;
  /**
   * Lets go of a store, and opens another over what it had kept, as a server does that is started again: what a store must keep beyond its
   * process is then pinned down too. Absent for a store that keeps nothing.
   */
  readonly reopen?: (opened: OpenedStore) => Promise<OpenedStore> | OpenedStore;
}

/** Opens a case's store again. What it gave before must not be used any more. */
type Reopen = () => Promise<SessionStore>;

/**
 * What every session store must keep to (session-store.ts; sessions.md speaks of one suite for all stores).
 *
 * @param open gives an empty store that is ready to work. It is called once for each case, and what it gave is closed after it.
 */
export function sessionStoreContract(
  open: () => Promise<OpenedStore> | OpenedStore,
  { clock, reopen }: SessionStoreContractOptions = {},
): readonly ContractCase[] {
  const cases: ContractCase[] = [];
  const add = (name: string, check: (store: SessionStore, again: Reopen) => Promise<void>): void => {
    cases.push({
      name,
      run: async () => {
        let opened = await open();
        const again = async () => {
          opened = (await reopen?.(opened)) ?? opened;
          return opened.store;
        };
        try {
          await soon(name, check(opened.store, again));
        } finally {
          await opened.close?.();
        }
      },
    });
  };

  add('has version 0 and no messages for a session that nobody has used', async (store) => {
    assert.deepEqual(await store.load(SESSION), { version: 0, messages: [] });
  });

  add('keeps messages of every form as they are', async (store) => {
    await store.commit(SESSION, { expected: 0, messages: EVERY_FORM });
    assert.deepEqual(await store.load(SESSION), { version: 1, messages: EVERY_FORM });
  });

  add('keeps text that databases and encodings stumble over', async (store) => {
    const messages: Message[] = ODD_TEXTS.map((content) => ({ role: 'user', content }));
    await store.commit(SESSION, { expected: 0, messages });
    assert.deepEqual((await store.load(SESSION)).messages, messages);
  });

  add('adds turn after turn, and counts them', async (store) => {
    await commitTurns(store, SESSION, 3);
    assert.deepEqual(await store.load(SESSION), { version: 3, messages: [...turn(1), ...turn(2), ...turn(3)] });
  });

  add('keeps a long turn whole', async (store) => {
    const messages: Message[] = Array.from({ length: 500 }, (_, i) => ({ role: 'user', content: `${i} ${'x'.repeat(2000)}` }));
    await store.commit(SESSION, { expected: 0, messages });
    assert.deepEqual((await store.load(SESSION)).messages, messages);
  });

  add('refuses a commit to another version than the loaded one, and keeps what was there', async (store) => {
    await commitTurns(store, SESSION, 2);
    for (const expected of [0, 1, 3]) {
      await assert.rejects(store.commit(SESSION, { expected, messages: turn(9) }), VersionConflict, `expected: ${expected}`);
    }
    assert.deepEqual(await store.load(SESSION), { version: 2, messages: [...turn(1), ...turn(2)] });
  });

  add('refuses a commit to a later version of a session that nobody has used', async (store) => {
    await assert.rejects(store.commit(SESSION, { expected: 1, messages: turn(9) }), VersionConflict);
    assert.deepEqual(await store.load(SESSION), { version: 0, messages: [] });
  });

  add('shows nothing of a turn that has begun, until it is committed', async (store) => {
    await commitTurns(store, SESSION, 1);
    await store.begin(SESSION, { turnId: 'turn_2', input: [{ role: 'user', content: 'question 2' }] });
    assert.deepEqual(await store.load(SESSION), { version: 1, messages: turn(1) });
    await store.commit(SESSION, { turnId: 'turn_2', expected: 1, messages: turn(2) });
    assert.deepEqual(await store.load(SESSION), { version: 2, messages: [...turn(1), ...turn(2)] });
  });

  add('leaves the conversation as it was when a turn is taken back', async (store) => {
    await commitTurns(store, SESSION, 1);
    await store.begin(SESSION, { turnId: 'turn_2', input: turn(2) });
    await store.abandon(SESSION, 'turn_2');
    await store.abandon(SESSION, 'turn_2');
    await store.abandon({ ...SESSION, key: 'nobody' }, 'turn_3');
    assert.deepEqual(await store.load(SESSION), { version: 1, messages: turn(1) });
    await store.commit(SESSION, { expected: 1, messages: turn(3) });
  });

  add('has nothing to recover of turns that ended, and tells of none that runs now', async (store) => {
    await store.begin(SESSION, { turnId: 'turn_1', input: turn(1) });
    await store.commit(SESSION, { turnId: 'turn_1', expected: 0, messages: turn(1) });
    await store.begin(SESSION, { turnId: 'turn_2', input: turn(2) });
    await store.abandon(SESSION, 'turn_2');
    assert.deepEqual(await store.recover(), []);
  });

  add('tells the version alone', async (store) => {
    assert.equal(await store.version(SESSION), 0);
    await commitTurns(store, SESSION, 2);
    assert.equal(await store.version(SESSION), 2);
  });

  add('lets exactly one of several commits at the same time win', async (store) => {
    const attempts = Array.from({ length: 8 }, (_, i) => store.commit(SESSION, { expected: 0, messages: turn(i) }));
    const results = await Promise.allSettled(attempts);
    const winner = results.findIndex((result) => result.status === 'fulfilled');
    for (const [i, result] of results.entries()) {
      if (i !== winner)
        assert.ok(result.status === 'rejected' && result.reason instanceof VersionConflict, `attempt ${i}: ${result.status}`);
    }
    assert.deepEqual(await store.load(SESSION), { version: 1, messages: turn(winner) });
  });

  add('holds the same key of another project or another agent for another session', async (store) => {
    await assertApart(store, [
      { project: 'acme', agent: 'helper', key: 'k' },
      { project: 'other', agent: 'helper', key: 'k' },
      { project: 'acme', agent: 'billing', key: 'k' },
    ]);
  });

  for (const separator of [':', '/', '|', ',', '-', ' ', '","', '\u001f']) {
    add(`does not mix up sessions whose names hold ${JSON.stringify(separator)}`, async (store) => {
      const [ab, bc] = [`a${separator}b`, `b${separator}c`];
      await assertApart(store, [
        { project: ab, agent: 'c', key: 'd' },
        { project: 'a', agent: bc, key: 'd' },
        { project: 'a', agent: 'b', key: `c${separator}d` },
        { project: ab, agent: `c${separator}d`, key: separator },
      ]);
    });
  }

  add('takes keys for data: neither paths nor SQL nor patterns, and compared byte for byte', async (store) => {
    await assertApart(
      store,
      ODD_KEYS.map((key) => ({ ...SESSION, key })),
    );
  });

  add('does not change with the messages that it was given', async (store) => {
    const messages = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'before' }] }];
    await store.commit(SESSION, { expected: 0, messages });
    for (const part of messages[0]?.content ?? []) part.text = 'after';
    messages.push({ role: 'user', content: [] });
    assert.deepEqual((await store.load(SESSION)).messages, [{ role: 'user', content: [{ type: 'text', text: 'before' }] }]);
  });

  add('does not change with the messages that it gave', async (store) => {
    await store.commit(SESSION, { expected: 0, messages: EVERY_FORM });
    await store.park(OWNER, ['call_1'], EVERY_FORM);
    tryToSpoil((await store.load(SESSION)).messages);
    tryToSpoil((await store.parked(OWNER, 'call_1')) ?? []);
    assert.deepEqual((await store.load(SESSION)).messages, EVERY_FORM);
    assert.deepEqual(await store.parked(OWNER, 'call_1'), EVERY_FORM);
  });

  add('leaves what was loaded as it was when another turn is added', async (store) => {
    await commitTurns(store, SESSION, 1);
    const before = await store.load(SESSION);
    await store.commit(SESSION, { expected: 1, messages: turn(2) });
    assert.deepEqual(before, { version: 1, messages: turn(1) });
  });

  add('gives parked messages back under each of their calls, as often as they are asked for', async (store) => {
    await store.park(OWNER, ['call_1', 'call_2'], EVERY_FORM);
    await store.park(OWNER, ['call_3'], turn(3));
    for (const call of ['call_1', 'call_2', 'call_1']) assert.deepEqual(await store.parked(OWNER, call), EVERY_FORM);
    assert.deepEqual(await store.parked(OWNER, 'call_3'), turn(3));
  });

  add('knows nothing under a call that nobody parked, nor under one of another owner', async (store) => {
    await store.park(OWNER, ['call_1'], turn(1));
    assert.equal(await store.parked(OWNER, 'call_2'), undefined);
    assert.equal(await store.parked({ ...OWNER, project: 'other' }, 'call_1'), undefined);
    assert.equal(await store.parked({ ...OWNER, agent: 'billing' }, 'call_1'), undefined);
  });

  add('holds what was parked last under a call whose id came twice', async (store) => {
    await store.park(OWNER, ['call_1', 'call_2'], turn(1));
    await store.park(OWNER, ['call_1'], turn(2));
    assert.deepEqual(await store.parked(OWNER, 'call_1'), turn(2));
    assert.deepEqual(await store.parked(OWNER, 'call_2'), turn(1));
  });

  add('parks nothing in a session', async (store) => {
    await store.park(OWNER, [SESSION.key], turn(1));
    assert.deepEqual(await store.load(SESSION), { version: 0, messages: [] });
    await store.commit(SESSION, { expected: 0, messages: turn(2) });
    assert.deepEqual(await store.parked(OWNER, SESSION.key), turn(1));
  });

  if (clock) {
    add('holds parked messages for an hour and no longer', async (store) => {
      await store.park(OWNER, ['call_1'], turn(1));
      clock.advance(59 * MINUTE);
      assert.deepEqual(await store.parked(OWNER, 'call_1'), turn(1));
      clock.advance(2 * MINUTE);
      assert.equal(await store.parked(OWNER, 'call_1'), undefined);
    });
  }

  if (reopen) {
    add('has what was committed when it is opened again, and goes on from there', async (store, again) => {
      await store.commit(SESSION, { expected: 0, messages: EVERY_FORM });
      await commitTurns(store, { ...SESSION, key: 'ben' }, 2);
      const second = await again();
      assert.equal(await second.version(SESSION), 1);
      assert.deepEqual(await second.load(SESSION), { version: 1, messages: EVERY_FORM });
      assert.equal(await second.version({ ...SESSION, key: 'ben' }), 2);
      await second.commit(SESSION, { expected: 1, messages: turn(2) });
      assert.deepEqual(await (await again()).load(SESSION), { version: 2, messages: [...EVERY_FORM, ...turn(2)] });
    });

    add('tells once of turns that only began before it was opened again, with what the caller had said', async (store, again) => {
      const elsewhere = { project: 'other', agent: 'billing', key: 'new' };
      await commitTurns(store, SESSION, 1);
      await store.begin(SESSION, { turnId: 'turn_2', input: EVERY_FORM });
      await store.begin(elsewhere, { turnId: 'turn_3', input: turn(3) });
      for (const turnId of ['turn_4', 'turn_5']) await store.begin(SESSION, { turnId, input: turn(4) });
      await store.commit(SESSION, { turnId: 'turn_4', expected: 1, messages: turn(4) });
      await store.abandon(SESSION, 'turn_5');

      const second = await again();
      await second.begin(SESSION, { turnId: 'turn_6', input: turn(6) });
      const interrupted = [...(await second.recover())].sort((a, b) => a.turnId.localeCompare(b.turnId));
      assert.deepEqual(interrupted, [
        { id: SESSION, turnId: 'turn_2', input: EVERY_FORM },
        { id: elsewhere, turnId: 'turn_3', input: turn(3) },
      ]);
      assert.deepEqual(await second.recover(), [], 'told a second time');
      assert.deepEqual(await second.load(SESSION), { version: 2, messages: [...turn(1), ...turn(4)] });
      assert.equal(await second.version(elsewhere), 0);
      await second.commit(SESSION, { turnId: 'turn_6', expected: 2, messages: turn(6) });
      assert.deepEqual(await (await again()).recover(), [], 'told after another start');
    });

    add('gives parked messages back when it is opened again', async (store, again) => {
      await store.park(OWNER, ['call_1', 'call_2'], EVERY_FORM);
      const second = await again();
      for (const call of ['call_1', 'call_2']) assert.deepEqual(await second.parked(OWNER, call), EVERY_FORM);
      assert.equal(await second.parked({ ...OWNER, project: 'other' }, 'call_1'), undefined);
    });
  }

  add('knows nothing of an idempotency key that nobody used', async ({ idempotency }) => {
    assert.equal(await idempotency.get(KEY), undefined);
  });

  add('keeps that tools began under an idempotency key, and in its place what was answered', async ({ idempotency }) => {
    await idempotency.put(record({ result: 'began' }));
    assert.deepEqual(await idempotency.get(KEY), record({ result: 'began' }));
    for (const text of ODD_TEXTS.filter((odd) => odd.isWellFormed())) {
      await idempotency.put(record({ result: { text } }));
      assert.deepEqual(await idempotency.get(KEY), record({ result: { text } }));
    }
  });

  add('takes idempotency keys for data, and tells them apart by project, route and key', async ({ idempotency }) => {
    const keys: IdempotencyKey[] = [
      ...ODD_KEYS.map((key) => ({ ...KEY, key })),
      { ...KEY, project: 'other' },
      { ...KEY, route: '/elsewhere' },
      { project: 'a:b', route: 'c', key: 'd' },
      { project: 'a', route: 'b:c', key: 'd' },
      { project: 'a","b', route: 'c', key: 'd' },
      { project: 'a', route: 'b","c', key: 'd' },
    ];
    for (const [n, key] of keys.entries()) await idempotency.put(record({ key, result: { text: `${n}` } }));
    for (const [n, key] of keys.entries()) {
      assert.deepEqual(await idempotency.get(key), record({ key, result: { text: `${n}` } }), JSON.stringify(key));
    }
  });

  add('keeps an answer together with its turn, or not at all', async (store) => {
    await store.idempotency.put(record({ result: 'began' }));
    const idempotency = record({ result: { text: 'answer' } });
    await assert.rejects(store.commit(SESSION, { expected: 1, messages: turn(1), idempotency }), VersionConflict);
    assert.deepEqual(await store.idempotency.get(KEY), record({ result: 'began' }));
    await store.commit(SESSION, { expected: 0, messages: turn(1), idempotency });
    assert.deepEqual(await store.idempotency.get(KEY), idempotency);
    assert.deepEqual(await store.load(SESSION), { version: 1, messages: turn(1) });
  });

  add('does not change with the answer that it was given', async ({ idempotency }) => {
    const result = { text: 'before' };
    const key = { ...KEY };
    await idempotency.put(record({ key, result }));
    result.text = 'after';
    key.project = 'other';
    assert.deepEqual(await idempotency.get(KEY), record({ result: { text: 'before' } }));
  });

  if (clock) {
    add('holds what was answered for 24 hours and no longer', async ({ idempotency }) => {
      await idempotency.put(record({ result: 'began' }));
      clock.advance(HOUR);
      await idempotency.put(record({ result: { text: 'answer' } }));
      clock.advance(24 * HOUR - MINUTE);
      assert.deepEqual(await idempotency.get(KEY), record({ result: { text: 'answer' } }));
      clock.advance(2 * MINUTE);
      assert.equal(await idempotency.get(KEY), undefined);
      await idempotency.put(record({ result: { text: 'another' } }));
      assert.deepEqual(await idempotency.get(KEY), record({ result: { text: 'another' } }));
    });
  }

  if (reopen) {
    add('knows its idempotency keys when it is opened again', async (store, again) => {
      const other = { ...KEY, key: 'other' };
      await store.idempotency.put(record({ result: 'began' }));
      const idempotency = record({ key: other, result: { text: 'answer' } });
      await store.commit(SESSION, { expected: 0, messages: turn(1), idempotency });
      const second = await again();
      assert.deepEqual(await second.idempotency.get(KEY), record({ result: 'began' }));
      assert.deepEqual(await second.idempotency.get(other), idempotency);
    });
  }

  add('says that it is well', async (store) => {
    assert.deepEqual(await store.health(), { ok: true });
  });

  return cases;
}

const OWNER = { project: 'acme', agent: 'helper' };
const SESSION: SessionId = { ...OWNER, key: 'anna' };

const KEY: IdempotencyKey = { project: 'acme', route: '/v1/chat/completions', key: 'once' };

function record(more: Partial<IdempotencyRecord>): IdempotencyRecord {
  return { key: KEY, fingerprint: 'f1', result: 'began', ...more };
}

/** A turn that says which one it is. */
function turn(n: number): readonly Message[] {
  return [
    { role: 'user', content: `question ${n}` },
    { role: 'assistant', content: `answer ${n}` },
  ];
}

async function commitTurns(store: SessionStore, id: SessionId, count: number): Promise<void> {
  for (let n = 1; n <= count; n++) await store.commit(id, { expected: n - 1, messages: turn(n) });
}

/** Each id is its own session: what is said in one is in no other. */
async function assertApart(store: SessionStore, ids: readonly SessionId[]): Promise<void> {
  for (const [n, id] of ids.entries()) await store.commit(id, { expected: 0, messages: turn(n) });
  for (const [n, id] of ids.entries()) {
    assert.deepEqual(await store.load(id), { version: 1, messages: turn(n) }, `the session ${JSON.stringify(id)}`);
  }
}

/** Changes what it can. A store may as well hand out what is frozen: that throws here, and is as good. */
function tryToSpoil(messages: readonly Message[]): void {
  for (const message of messages) attempt(() => Object.assign(message, { content: 'spoilt' }));
  attempt(() => (messages as Message[]).splice(0));
}

function attempt(change: () => void): void {
  try {
    change();
  } catch (error) {
    assert.ok(error instanceof TypeError);
  }
}

const ODD_TEXTS = [
  '',
  ' ',
  '\u0000 and \u0001',
  '"quotes" and \\ and \'',
  '\r\n\u2028\u2029',
  '🧮 é é ẞ 漢字 \u202E',
  'a lone half: \ud83d',
  "'); DROP TABLE session; --",
];

const ODD_KEYS = [
  'a',
  'A',
  'a ',
  ' a',
  '../a',
  './a',
  'a/',
  '/etc/passwd',
  'C:\\a',
  'a.json',
  "a'; DROP TABLE session; --",
  'a"',
  '%',
  '_',
  '*',
  '$1',
  '\u00e9',
  'e\u0301',
  'ẞ',
  'ß',
  '🧮',
  '\u202ea',
  '__proto__',
  'constructor',
  'null',
  '0',
  '00',
  'x'.repeat(512),
  `${'x'.repeat(511)}y`,
];

/** Every form that message.ts knows, every optional field of it once. */
const EVERY_FORM: readonly Message[] = [
  { role: 'system', content: 'You are a helpful assistant.', name: 'operator' },
  { role: 'system', content: [{ type: 'text', text: 'in parts' }] },
  { role: 'user', content: 'plain', name: 'anna' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'what is this?' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=', detail: 'low' } },
      { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERg==' } },
      { type: 'video_url', video_url: { url: 'https://example.com/a.mp4' } },
    ],
  },
  {
    role: 'assistant',
    content: null,
    tool_calls: [
      { id: 'call_1', type: 'function', function: { name: 'clock', arguments: '{ "timeZone":"UTC" }' } },
      { id: 'call_2', type: 'custom', custom: { name: 'grep', input: 'a.*b' } },
    ],
  },
  { role: 'tool', content: 'noon', tool_call_id: 'call_1' },
  { role: 'tool', content: [{ type: 'text', text: 'nothing found' }], tool_call_id: 'call_2' },
  {
    role: 'assistant',
    content: [
      { type: 'text', text: 'It is ' },
      { type: 'refusal', refusal: 'not for me to say' },
    ],
    name: 'helper',
  },
  { role: 'assistant', content: null, refusal: 'I cannot help with that.' },
  { role: 'assistant', content: null, audio: { id: 'audio_1' } },
  { role: 'assistant', content: null, function_call: { name: 'old', arguments: '{}' } },
  { role: 'function', content: null, name: 'old' },
  { role: 'function', content: 'ok', name: 'old' },
];
