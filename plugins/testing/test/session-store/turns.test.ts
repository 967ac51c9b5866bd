import type { Message } from '@plugboard/kernel';
import { type SessionId, type TurnCommit, VersionConflict } from '@plugboard/kernel/contracts';
import t from 'tap';
import type { ManualClock } from '../../src/index.js';
import { failingCases, PlainStore } from './plain-store.js';

t.test('finds commits that lose or overwrite turns', async (t) => {
  class LastWins extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, { ...turn, expected: this.versionOf(id) });
    }
  }
  t.same(await failingCases(LastWins), [
    'refuses a commit to another version and changes nothing',
    'refuses a commit to a later version of an unknown session',
    'accepts exactly one of several concurrent commits',
    'creates a session with messages, which become turn 1',
    'keeps the record of a turn beside its messages',
    'refuses commits that loaded the session before its deletion',
    'starts a new session over a deleted one without a turn',
    'leaves no message behind when a session is deleted during a commit',
    'keeps deletions across a restart and recovers no turn of a deleted session',
    'stores no approval of a turn that is refused',
    'stores an idempotency record together with its turn, or not at all',
    'changes the state with a turn, or not at all',
  ]);

  class Racy extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      const version = await this.version(id);
      if (version !== turn.expected) throw new VersionConflict(turn.expected, version);
      await super.commit(id, { ...turn, expected: this.versionOf(id) });
    }
  }
  t.same(await failingCases(Racy), [
    'accepts exactly one of several concurrent commits',
    'leaves no message behind when a session is deleted during a commit',
  ]);

  class OnlyLast extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, turn);
      this.sessions.get(this.keyOf(id))?.turns.fill([], 0, -1);
    }
  }
  t.ok((await failingCases(OnlyLast)).includes('appends turns and counts them'));
});

t.test('finds lost and misplaced records', async (t) => {
  class Forgets extends PlainStore {
    override async commit(id: SessionId, { record: _, ...turn }: TurnCommit) {
      await super.commit(id, turn);
    }
  }
  t.same(await failingCases(Forgets), [
    'keeps the record of a turn beside its messages',
    'copies the records of the turns to a fork',
    'keeps records across a restart',
  ]);

  class CopiesAll extends PlainStore {
    override async fork(id: SessionId, key: string, turns: number) {
      await super.fork(id, key, turns);
      const [from, to] = [id, { ...id, key }].map((one) => this.sessions.get(this.keyOf(one)));
      if (from && to) to.records = new Map(from.records);
    }
  }
  t.same(await failingCases(CopiesAll), ['copies the records of the turns to a fork']);
});

t.test('finds changed messages', async (t) => {
  const forms = 'keeps every kind of message unchanged';
  const texts = 'keeps text that is difficult for databases and encodings';
  class Textual extends PlainStore {
    override async commit(id: SessionId, { expected, messages }: TurnCommit) {
      await super.commit(id, { expected, messages: messages.map(({ role, content }) => ({ role, content })) as Message[] });
    }
  }
  t.ok((await failingCases(Textual)).includes(forms));

  class Utf8 extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      const stored = turn.messages.map((message) =>
        typeof message.content === 'string' ? { ...message, content: Buffer.from(message.content).toString() } : message,
      );
      await super.commit(id, { ...turn, messages: stored as Message[] });
    }
  }
  t.same(await failingCases(Utf8), [texts]);
});

t.test('finds an outdated version', async (t) => {
  class Lags extends PlainStore {
    override async version(id: SessionId) {
      return Math.min(await super.version(id), 1);
    }
  }
  t.ok((await failingCases(Lags)).includes('returns the version'));
});

t.test('finds faults after a restart', async (t) => {
  const committed = 'keeps committed turns across a restart';
  const recovered = 'recovers interrupted turns with their input, each once';
  const deleted = 'keeps deletions across a restart and recovers no turn of a deleted session';
  const afterwards = 'recovers turns that began after a deletion';
  class Forgetful extends PlainStore {
    constructor(clock: ManualClock) {
      super(clock);
    }
  }
  t.same(await failingCases(Forgetful), [
    committed,
    recovered,
    'keeps sessions across a restart',
    'keeps records across a restart',
    deleted,
    afterwards,
    'keeps across a restart to which session another belongs',
    'returns documents after a restart',
    'keeps approvals across a restart',
    'loads a pending turn after a restart',
    'keeps idempotency records across a restart',
    'keeps the state after a restart',
  ]);

  class RecoversAlways extends PlainStore {
    override async recover() {
      return [...this.begun.values()];
    }
  }
  t.same(await failingCases(RecoversAlways), [recovered]);

  class RecoversNothing extends PlainStore {
    override async recover() {
      return [];
    }
  }
  t.same(await failingCases(RecoversNothing), [recovered, deleted, afterwards]);

  class RecoversEnded extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      const begun = this.begun.get(turn.turnId ?? '');
      await super.commit(id, turn);
      if (begun) this.begun.set(begun.turnId, begun);
    }
  }
  t.same(await failingCases(RecoversEnded), [recovered]);

  class RecoversAbandoned extends PlainStore {
    override async abandon() {}
  }
  t.same(await failingCases(RecoversAbandoned), [recovered]);

  class RecoversWithoutInput extends PlainStore {
    override async recover() {
      return (await super.recover()).map((turn) => ({ ...turn, input: [] }));
    }
  }
  t.same(await failingCases(RecoversWithoutInput), [recovered, afterwards]);
});
