import type { Message } from '@plugboard/kernel';
import type { SessionId, TurnCommit } from '@plugboard/kernel/contracts';
import t from 'tap';
import { failingCases, PlainStore } from './plain-store.js';

t.test('finds sessions that are not separate', async (t) => {
  class NoTenants extends PlainStore {
    override keyOf({ key }: SessionId) {
      return key;
    }
  }
  t.ok((await failingCases(NoTenants)).includes('separates sessions by project, agent and key'));

  class Joined extends PlainStore {
    override keyOf({ project, agent, key }: SessionId) {
      return `${project}:${agent}:${key}`;
    }
  }
  t.same(await failingCases(Joined), ['separates sessions whose names contain ":"']);

  class Quoted extends PlainStore {
    override keyOf({ project, agent, key }: SessionId) {
      return `["${project}","${agent}","${key}"]`;
    }
  }
  t.same(await failingCases(Quoted), ['separates sessions whose names contain "\\",\\""']);

  const odd = 'treats keys as data, compared byte by byte';
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
    t.ok((await failingCases(Folding)).includes(odd), String(fold));
  }
});

t.test('finds data shared with callers', async (t) => {
  class SharesIn extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, turn);
      this.sessions.get(this.keyOf(id))?.turns.splice(-1, 1, turn.messages);
    }
  }
  t.ok((await failingCases(SharesIn)).includes('is not affected by later changes to messages it was given'));

  class SharesOut extends PlainStore {
    override async load(id: SessionId) {
      return this.loaded(id);
    }
  }
  t.same(await failingCases(SharesOut), ['is not affected by changes to messages it returned']);

  class Growing extends PlainStore {
    readonly lent = new Map<string, Message[]>();
    override async load(id: SessionId) {
      const stored = await super.load(id);
      const messages = [...stored.messages];
      this.lent.set(this.keyOf(id), messages);
      return { ...stored, messages };
    }
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, turn);
      this.lent.get(this.keyOf(id))?.push(...turn.messages);
    }
  }
  t.ok((await failingCases(Growing)).includes('does not change a loaded conversation when a turn is added'));

  class Frozen extends PlainStore {
    override async load(id: SessionId) {
      const stored = await super.load(id);
      return { ...stored, messages: Object.freeze(stored.messages.map((message) => Object.freeze(message))) };
    }
  }
  t.same(await failingCases(Frozen), [], 'to hand out what cannot be changed is as good');
});
