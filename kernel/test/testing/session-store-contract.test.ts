import t from 'tap';
import {
  type IdempotencyKey,
  type IdempotencyRecord,
  type InterruptedTurn,
  type Message,
  type ParkOwner,
  type SessionId,
  type SessionStore,
  type StoredSession,
  type TurnBegin,
  type TurnCommit,
  VersionConflict,
} from '../../src/index.js';
import { ManualClock, type OpenedStore, sessionStoreContract } from '../../src/testing/index.js';
import { failing } from './failing.js';

/** What outlives a store: the next one is opened over it. */
class Kept {
  readonly sessions = new Map<string, StoredSession>();
  readonly calls = new Map<string, { messages: readonly Message[]; until: number }>();
  readonly begun = new Map<string, InterruptedTurn>();
  readonly answers = new Map<string, { record: IdempotencyRecord; until: number }>();
}

/** The least that keeps the contract. What is wrong with a store below is what it overrides. */
class PlainStore implements SessionStore {
  readonly sessions: Kept['sessions'];
  readonly calls: Kept['calls'];
  readonly begun: Kept['begun'];
  /** What had begun before this store was opened. */
  readonly left: Kept['begun'];

  constructor(
    readonly clock = new ManualClock(),
    readonly kept = new Kept(),
  ) {
    this.sessions = kept.sessions;
    this.calls = kept.calls;
    this.begun = kept.begun;
    this.left = new Map(kept.begun);
  }

  async load(id: SessionId): Promise<StoredSession> {
    return structuredClone(this.sessions.get(this.keyOf(id)) ?? { version: 0, messages: [] });
  }

  async version(id: SessionId): Promise<number> {
    return this.sessions.get(this.keyOf(id))?.version ?? 0;
  }

  async begin(id: SessionId, { turnId, input }: TurnBegin): Promise<void> {
    this.begun.set(turnId, structuredClone({ id, turnId, input }));
  }

  readonly idempotency = {
    get: async (key: IdempotencyKey) => {
      const found = this.kept.answers.get(this.answerKeyOf(key));
      return found && found.until > this.clock.monotonic() ? structuredClone(found.record) : undefined;
    },
    put: async (record: IdempotencyRecord) => this.putAnswer(record),
  };

  putAnswer(record: IdempotencyRecord): void {
    const until = this.clock.monotonic() + 24 * 3_600_000;
    this.kept.answers.set(this.answerKeyOf(record.key), { record: structuredClone(record), until });
  }

  answerKeyOf({ project, route, key }: IdempotencyKey): string {
    return JSON.stringify([project, route, key]);
  }

  async commit(id: SessionId, { turnId, expected, messages, idempotency }: TurnCommit): Promise<void> {
    const { version, messages: before } = this.sessions.get(this.keyOf(id)) ?? { version: 0, messages: [] };
    if (version !== expected) throw new VersionConflict(expected, version);
    this.sessions.set(this.keyOf(id), { version: version + 1, messages: [...before, ...structuredClone(messages)] });
    if (turnId !== undefined) this.begun.delete(turnId);
    if (idempotency) this.putAnswer(idempotency);
  }

  async abandon(_: SessionId, turnId: string): Promise<void> {
    this.begun.delete(turnId);
  }

  async recover(): Promise<readonly InterruptedTurn[]> {
    const turns = [...this.left.values()];
    for (const { turnId } of turns) this.begun.delete(turnId);
    this.left.clear();
    return turns;
  }

  async park(owner: ParkOwner, callIds: readonly string[], messages: readonly Message[]): Promise<void> {
    const parked = { messages: structuredClone(messages), until: this.clock.monotonic() + 3_600_000 };
    for (const callId of callIds) this.calls.set(this.keyOf({ ...owner, key: callId }), parked);
  }

  async parked(owner: ParkOwner, callId: string): Promise<readonly Message[] | undefined> {
    const found = this.calls.get(this.keyOf({ ...owner, key: callId }));
    return found && found.until > this.clock.monotonic() ? structuredClone(found.messages) : undefined;
  }

  async health(): Promise<{ readonly ok: boolean; readonly reason?: string }> {
    return { ok: true };
  }

  keyOf({ project, agent, key }: SessionId): string {
    return JSON.stringify([project, agent, key]);
  }
}

/** How many cases find fault with a store, and whether a given one does. */
async function broken(Store: new (clock: ManualClock, kept: Kept) => PlainStore): Promise<readonly string[]> {
  const clock = new ManualClock();
  const over = (kept: Kept) => ({ store: new Store(clock, kept) });
  const reopen = ({ store }: OpenedStore) => over((store as PlainStore).kept);
  return failing(sessionStoreContract(() => over(new Kept()), { clock, reopen }));
}

t.test('a store that keeps the contract passes, and every store that was opened is closed', async (t) => {
  t.same(await broken(PlainStore), []);
  let open = 0;
  const cases = sessionStoreContract(() => {
    open++;
    return { store: new PlainStore(), close: () => void open-- };
  });
  t.same(await failing(cases), []);
  t.equal(open, 0);
  t.notOk(
    cases.some(({ name }) => name.includes('hour')),
    'without a clock to move, nothing is said of expiry',
  );
  t.notOk(
    cases.some(({ name }) => name.includes('opened again')),
    'nor is anything said of a store that cannot be opened again',
  );
});

t.test('sessions that are told apart too little or too much', async (t) => {
  class NoTenants extends PlainStore {
    override keyOf({ key }: SessionId) {
      return key;
    }
  }
  t.ok((await broken(NoTenants)).includes('holds the same key of another project or another agent for another session'));

  class Joined extends PlainStore {
    override keyOf({ project, agent, key }: SessionId) {
      return `${project}:${agent}:${key}`;
    }
  }
  t.same(await broken(Joined), ['does not mix up sessions whose names hold ":"']);

  class Quoted extends PlainStore {
    override keyOf({ project, agent, key }: SessionId) {
      return `["${project}","${agent}","${key}"]`;
    }
  }
  t.same(await broken(Quoted), ['does not mix up sessions whose names hold "\\",\\""']);

  const odd = 'takes keys for data: neither paths nor SQL nor patterns, and compared byte for byte';
  const foldings: ((key: string) => string)[] = [
    (key) => key.toLowerCase(),
    (key) => key.trim(),
    (key) => key.normalize('NFC'),
    (key) => new URL(key, 'file:///').pathname,
    (key) => key.slice(0, 255),
  ];
  for (const fold of foldings) {
    class Folding extends PlainStore {
      override keyOf(id: SessionId) {
        return super.keyOf({ ...id, key: fold(id.key) });
      }
    }
    t.ok((await broken(Folding)).includes(odd), String(fold));
  }
});

t.test('commits that lose or overwrite', async (t) => {
  class LastWins extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, { ...turn, expected: this.sessions.get(this.keyOf(id))?.version ?? 0 });
    }
  }
  t.same(await broken(LastWins), [
    'refuses a commit to another version than the loaded one, and keeps what was there',
    'refuses a commit to a later version of a session that nobody has used',
    'lets exactly one of several commits at the same time win',
    'keeps an answer together with its turn, or not at all',
  ]);

  class Racy extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      const { version, messages: before } = await this.load(id);
      if (version !== turn.expected) throw new VersionConflict(turn.expected, version);
      this.sessions.set(this.keyOf(id), { version, messages: before });
      await super.commit(id, { ...turn, expected: version });
    }
  }
  t.same(await broken(Racy), ['lets exactly one of several commits at the same time win']);

  class OnlyLast extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, turn);
      this.sessions.set(this.keyOf(id), { version: turn.expected + 1, messages: structuredClone(turn.messages) });
    }
  }
  t.ok((await broken(OnlyLast)).includes('adds turn after turn, and counts them'));
});

t.test('messages that come back otherwise than they went in', async (t) => {
  const forms = 'keeps messages of every form as they are';
  const texts = 'keeps text that databases and encodings stumble over';
  class Textual extends PlainStore {
    override async commit(id: SessionId, { expected, messages }: TurnCommit) {
      await super.commit(id, { expected, messages: messages.map(({ role, content }) => ({ role, content })) as Message[] });
    }
  }
  t.ok((await broken(Textual)).includes(forms));

  class Utf8 extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      const stored = turn.messages.map((message) =>
        typeof message.content === 'string' ? { ...message, content: Buffer.from(message.content).toString() } : message,
      );
      await super.commit(id, { ...turn, messages: stored as Message[] });
    }
  }
  t.same(await broken(Utf8), [texts]);
});

t.test('data that is shared with callers', async (t) => {
  class SharesIn extends PlainStore {
    override async commit(id: SessionId, { expected, messages }: TurnCommit) {
      await super.commit(id, { expected, messages: [] });
      this.sessions.set(this.keyOf(id), { version: expected + 1, messages });
    }
  }
  t.ok((await broken(SharesIn)).includes('does not change with the messages that it was given'));

  class SharesOut extends PlainStore {
    override async load(id: SessionId) {
      return this.sessions.get(this.keyOf(id)) ?? { version: 0, messages: [] };
    }
  }
  t.same(await broken(SharesOut), ['does not change with the messages that it gave']);

  class Growing extends PlainStore {
    override async load(id: SessionId) {
      const found = this.sessions.get(this.keyOf(id));
      return { version: found?.version ?? 0, messages: (found?.messages ?? []) as Message[] };
    }
    override async commit(id: SessionId, { expected, messages }: TurnCommit) {
      const before = this.sessions.get(this.keyOf(id))?.messages;
      await super.commit(id, { expected, messages });
      if (!before) return;
      (before as Message[]).push(...structuredClone(messages));
      this.sessions.set(this.keyOf(id), { version: expected + 1, messages: before });
    }
  }
  t.ok((await broken(Growing)).includes('leaves what was loaded as it was when another turn is added'));

  class Frozen extends PlainStore {
    override async load(id: SessionId) {
      const { version, messages } = await super.load(id);
      return { version, messages: Object.freeze(messages.map((message) => Object.freeze(message))) };
    }
  }
  t.same(await broken(Frozen), [], 'to hand out what cannot be changed is as good');
});

t.test('messages that are parked badly', async (t) => {
  class OneOwner extends PlainStore {
    override async parked(owner: ParkOwner, callId: string) {
      for (const key of this.calls.keys()) if (key.endsWith(`,${JSON.stringify(callId)}]`)) return this.calls.get(key)?.messages;
      return super.parked(owner, callId);
    }
  }
  t.ok((await broken(OneOwner)).includes('knows nothing under a call that nobody parked, nor under one of another owner'));

  class Once extends PlainStore {
    override async parked(owner: ParkOwner, callId: string) {
      const found = await super.parked(owner, callId);
      this.calls.delete(this.keyOf({ ...owner, key: callId }));
      return found;
    }
  }
  t.ok((await broken(Once)).includes('gives parked messages back under each of their calls, as often as they are asked for'));

  class Forever extends PlainStore {
    override async parked(owner: ParkOwner, callId: string) {
      return this.calls.get(this.keyOf({ ...owner, key: callId }))?.messages;
    }
  }
  t.ok((await broken(Forever)).includes('holds parked messages for an hour and no longer'));

  class FirstStays extends PlainStore {
    override async park(owner: ParkOwner, callIds: readonly string[], messages: readonly Message[]) {
      await super.park(
        owner,
        callIds.filter((callId) => !this.calls.has(this.keyOf({ ...owner, key: callId }))),
        messages,
      );
    }
  }
  t.same(await broken(FirstStays), ['holds what was parked last under a call whose id came twice']);

  class AsSession extends PlainStore {
    override async park(owner: ParkOwner, callIds: readonly string[], messages: readonly Message[]) {
      await super.park(owner, callIds, messages);
      for (const key of callIds) this.sessions.set(this.keyOf({ ...owner, key }), { version: 1, messages });
    }
  }
  t.same(await broken(AsSession), ['parks nothing in a session']);
});

t.test('what is lost when a store is opened again, and what is told of it', async (t) => {
  const committed = 'has what was committed when it is opened again, and goes on from there';
  const told = 'tells once of turns that only began before it was opened again, with what the caller had said';
  class Forgetful extends PlainStore {
    constructor(clock: ManualClock) {
      super(clock);
    }
  }
  t.same(await broken(Forgetful), [
    committed,
    told,
    'gives parked messages back when it is opened again',
    'knows its idempotency keys when it is opened again',
  ]);

  class TellsAlways extends PlainStore {
    override async recover() {
      return [...this.begun.values()];
    }
  }
  t.same(await broken(TellsAlways), [told]);

  class TellsNothing extends PlainStore {
    override async recover() {
      return [];
    }
  }
  t.same(await broken(TellsNothing), [told]);

  class TellsOfEnded extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, { ...turn, turnId: undefined });
    }
  }
  t.same(await broken(TellsOfEnded), [told]);

  class TellsOfTakenBack extends PlainStore {
    override async abandon() {}
  }
  t.same(await broken(TellsOfTakenBack), [told]);

  class TellsWithoutInput extends PlainStore {
    override async recover() {
      return (await super.recover()).map((turn) => ({ ...turn, input: [] }));
    }
  }
  t.same(await broken(TellsWithoutInput), [told]);
});

t.test('idempotency keys that are told apart too little, kept too long, or kept without their turn', async (t) => {
  const apart = 'takes idempotency keys for data, and tells them apart by project, route and key';
  const together = 'keeps an answer together with its turn, or not at all';
  class NoTenants extends PlainStore {
    override answerKeyOf({ route, key }: IdempotencyKey) {
      return JSON.stringify([route, key]);
    }
  }
  t.same(await broken(NoTenants), [apart]);

  class Joined extends PlainStore {
    override answerKeyOf({ project, route, key }: IdempotencyKey) {
      return `${project}:${route}:${key}`;
    }
  }
  t.same(await broken(Joined), [apart]);

  class Alone extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      if (turn.idempotency) this.putAnswer(turn.idempotency);
      await super.commit(id, turn);
    }
  }
  t.same(await broken(Alone), [together]);

  class Forgets extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, { ...turn, idempotency: undefined });
    }
  }
  t.ok((await broken(Forgets)).includes(together));

  class Forever extends PlainStore {
    override putAnswer(record: IdempotencyRecord) {
      this.kept.answers.set(this.answerKeyOf(record.key), { record: structuredClone(record), until: Number.POSITIVE_INFINITY });
    }
  }
  t.same(await broken(Forever), ['holds what was answered for 24 hours and no longer']);

  class Shares extends PlainStore {
    override putAnswer(record: IdempotencyRecord) {
      super.putAnswer(record);
      this.kept.answers.set(this.answerKeyOf(record.key), { record, until: this.clock.monotonic() + 24 * 3_600_000 });
    }
  }
  t.same(await broken(Shares), ['does not change with the answer that it was given']);

  class FirstStays extends PlainStore {
    override putAnswer(record: IdempotencyRecord) {
      if (!this.kept.answers.has(this.answerKeyOf(record.key))) super.putAnswer(record);
    }
  }
  t.ok(
    (await broken(FirstStays)).includes('keeps that tools began under an idempotency key, and in its place what was answered'),
  );
});

t.test('a version that lags behind', async (t) => {
  class Lags extends PlainStore {
    override async version(id: SessionId) {
      return Math.min(await super.version(id), 1);
    }
  }
  t.ok((await broken(Lags)).includes('tells the version alone'));
});

t.test('a store that is not well', async (t) => {
  class Unwell extends PlainStore {
    override async health() {
      return { ok: false, reason: 'the disk is full' };
    }
  }
  t.same(await broken(Unwell), ['says that it is well']);
});
