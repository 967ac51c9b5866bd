import type { IdempotencyKey, IdempotencyRecord, SessionId, TurnCommit } from '@plugboard/kernel/contracts';
import t from 'tap';
import { failingCases, PlainStore } from './plain-store.js';

t.test('finds faulty idempotency records', async (t) => {
  const apart = 'treats idempotency keys as data and separates them by project, route and key';
  const together = 'stores an idempotency record together with its turn, or not at all';
  const neither = 'stores neither a turn nor its idempotency record if one of them cannot be stored';
  const atOnce = 'shows a turn and its idempotency record at the same moment';
  class NoTenants extends PlainStore {
    override answerKeyOf({ route, key }: IdempotencyKey) {
      return JSON.stringify([route, key]);
    }
  }
  t.same(await failingCases(NoTenants), [apart]);

  class Joined extends PlainStore {
    override answerKeyOf({ project, route, key }: IdempotencyKey) {
      return `${project}:${route}:${key}`;
    }
  }
  t.same(await failingCases(Joined), [apart]);

  class Alone extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      if (turn.idempotency) this.putAnswer(turn.idempotency);
      await super.commit(id, turn);
    }
  }
  t.same(await failingCases(Alone), [together, neither]);

  class TwoSteps extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      const idempotency = structuredClone(turn.idempotency);
      await super.commit(id, { ...turn, idempotency: undefined });
      await new Promise(setImmediate);
      if (idempotency) this.putAnswer(idempotency);
    }
  }
  t.same(await failingCases(TwoSteps), [atOnce]);

  class Forgets extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      await super.commit(id, { ...turn, idempotency: undefined });
    }
  }
  t.ok((await failingCases(Forgets)).includes(together));

  class Forever extends PlainStore {
    override putAnswer(record: IdempotencyRecord) {
      super.putAnswer(record);
      this.kept.answers.set(this.answerKeyOf(record.key), { record: structuredClone(record), until: Number.POSITIVE_INFINITY });
    }
  }
  t.same(await failingCases(Forever), ['keeps an idempotency record for 24 hours']);

  class Shares extends PlainStore {
    override putAnswer(record: IdempotencyRecord) {
      super.putAnswer(record);
      this.kept.answers.set(this.answerKeyOf(record.key), { record, until: this.clock.monotonic() + 24 * 3_600_000 });
    }
  }
  t.same(await failingCases(Shares), ['shares no idempotency record with its callers']);

  class FirstStays extends PlainStore {
    override putAnswer(record: IdempotencyRecord) {
      if (!this.kept.answers.has(this.answerKeyOf(record.key))) super.putAnswer(record);
    }
  }
  t.ok((await failingCases(FirstStays)).includes('replaces what has begun by its answer'));
});

t.test('finds claims of idempotency keys that are given twice, too early, or never back', async (t) => {
  const atOnce = 'PG-19 gives an idempotency key to one of several requests at once';
  const released = 'frees a released idempotency key, unless tools had begun';
  const answered = 'ends the claim of an idempotency key with its answer';
  class OnlyReads extends PlainStore {
    override readonly claims = new (class extends Map<string, string> {
      override set() {
        return this;
      }
    })();
  }
  t.same(await failingCases(OnlyReads), [atOnce]);

  class Never extends PlainStore {
    override readonly claims = new (class extends Map<string, string> {
      override delete() {
        return true;
      }
    })();
  }
  const found = await failingCases(Never);
  t.ok(found.includes(released) && found.includes(answered));

  class UntilToolsBegin extends PlainStore {
    override putAnswer(record: IdempotencyRecord) {
      super.putAnswer(record);
      this.claims.delete(this.answerKeyOf(record.key));
    }
  }
  t.same(await failingCases(UntilToolsBegin), [atOnce]);

  class NotByCommit extends PlainStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      const claims = new Map(this.claims);
      await super.commit(id, turn);
      for (const [key, fingerprint] of claims) this.claims.set(key, fingerprint);
    }
  }
  t.same(await failingCases(NotByCommit), [answered]);
});
