import t from 'tap';
import { type Message, type SessionId, type TurnCommit, VersionConflict } from '../../../src/index.js';
import type { ManualClock } from '../../../src/testing/index.js';
import { broken, PlainStore } from './plain-store.js';

t.test('commits that lose or overwrite', async (t) => {
  class LastWins extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, { ...turn, expected: this.versionOf(id) });
    }
  }
  t.same(await broken(LastWins), [
    'refuses a commit to another version than the loaded one, and keeps what was there',
    'refuses a commit to a later version of a session that nobody has used',
    'lets exactly one of several commits at the same time win',
    'makes a session with messages, which are turn 1 of it',
    'refuses a commit by whoever loaded the session before it was deleted',
    'begins anew without a turn where a session was deleted',
    'leaves no message behind where a session is deleted while a turn is committed to it',
    'has deleted what it deleted when it is opened again, and has no turn of it to recover',
    'keeps an answer together with its turn, or not at all',
  ]);

  class Racy extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      const version = await this.version(id);
      if (version !== turn.expected) throw new VersionConflict(turn.expected, version);
      await super.commit(id, { ...turn, expected: this.versionOf(id) });
    }
  }
  t.same(await broken(Racy), [
    'lets exactly one of several commits at the same time win',
    'leaves no message behind where a session is deleted while a turn is committed to it',
  ]);

  class OnlyLast extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, turn);
      this.sessions.get(this.keyOf(id))?.turns.fill([], 0, -1);
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

t.test('a version that lags behind', async (t) => {
  class Lags extends PlainStore {
    override async version(id: SessionId) {
      return Math.min(await super.version(id), 1);
    }
  }
  t.ok((await broken(Lags)).includes('tells the version alone'));
});

t.test('what is lost when a store is opened again, and what is told of it', async (t) => {
  const committed = 'has what was committed when it is opened again, and goes on from there';
  const told = 'tells once of turns that only began before it was opened again, with what the caller had said';
  const deleted = 'has deleted what it deleted when it is opened again, and has no turn of it to recover';
  const afterwards = 'tells of turns that began after the deletion as of any other';
  class Forgetful extends PlainStore {
    constructor(clock: ManualClock) {
      super(clock);
    }
  }
  t.same(await broken(Forgetful), [
    committed,
    told,
    'knows what it knew of its sessions when it is opened again',
    deleted,
    afterwards,
    'loads a pending turn after a restart',
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
  t.same(await broken(TellsNothing), [told, deleted, afterwards]);

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
  t.same(await broken(TellsWithoutInput), [told, afterwards]);
});
