import { type IdempotencyRecord, ProjectQuotaExceeded, type SessionId, type TurnCommit } from '@plugboard/kernel/contracts';
import t from 'tap';
import type { StoreQuotas } from '../../src/index.js';
import { sessionStoreContract } from '../../src/session-store/session-store-contract.js';
import { casesOf, failing } from '../failing.js';
import { PlainStore } from './plain-store.js';

/** A store that refuses what exceeds its quotas. */
class LimitedStore extends PlainStore {
  quotas: StoreQuotas = { maxSessions: 1_000, maxBytes: 1e9 };

  override async begin(...[id, turn]: Parameters<PlainStore['begin']>) {
    this.assertFits(id, 1);
    await super.begin(id, turn);
  }

  override async create(...[id, session]: Parameters<PlainStore['create']>) {
    this.assertFits(id, sizeOf(session.messages));
    await super.create(id, session);
  }

  override async commit(id: SessionId, turn: TurnCommit) {
    if (turn.turnId === undefined) this.assertFits(id, sizeOf(turn.messages) + (turn.record ?? '').length);
    await super.commit(id, turn);
  }

  override async fork(id: SessionId, key: string, turns: number) {
    this.assertFits({ ...id, key }, this.loaded(id).bytes);
    await super.fork(id, key, turns);
  }

  recordBytes(records: ReadonlyMap<number, string>): number {
    return [...records.values()].reduce((sum, record) => sum + record.length, 0);
  }

  assertFits(id: SessionId, bytes: number): void {
    const own = [...this.sessions.values()].filter((session) => session.id.project === id.project);
    const used = own.reduce((sum, session) => sum + this.loaded(session.id).bytes + this.recordBytes(session.records), 0);
    if (used + bytes > this.quotas.maxBytes) throw new ProjectQuotaExceeded('maxBytes', this.quotas.maxBytes);
    if (own.length >= this.quotas.maxSessions && !this.sessions.has(this.keyOf(id)))
      throw new ProjectQuotaExceeded('maxSessions', this.quotas.maxSessions);
  }
}

function sizeOf(messages: readonly object[]): number {
  return messages.reduce((sum, message) => sum + Buffer.byteLength(JSON.stringify(message)), 0);
}

/** The names of the quota cases that a store fails. */
async function brokenQuotas(Store: typeof LimitedStore): Promise<readonly string[]> {
  const cases = casesOf((test) =>
    sessionStoreContract(test, {
      open: () => ({ store: new Store() }),
      openLimited: (quotas) => ({ store: Object.assign(new Store(), { quotas }) }),
    }),
  );
  return failing(cases.filter(({ name }) => name.startsWith('S-39')));
}

t.test('finds stores that do not keep their quotas', async (t) => {
  t.same(await brokenQuotas(LimitedStore), []);

  const [sessions, bytes, records, begun] = [
    'S-39 limits the number of sessions of a project',
    'S-39 limits the bytes of a project',
    'S-39 counts the records of turns',
    'S-39 commits a turn that began before its project reached a limit',
  ];
  class Unlimited extends LimitedStore {
    override assertFits() {}
  }
  t.same(await brokenQuotas(Unlimited), [sessions, bytes, records]);

  class ForgetsForks extends LimitedStore {
    override async fork(id: SessionId, key: string, turns: number) {
      await PlainStore.prototype.fork.call(this, id, key, turns);
    }
  }
  t.same(await brokenQuotas(ForgetsForks), [sessions, bytes]);

  class LosesTurns extends LimitedStore {
    override async commit(id: SessionId, turn: TurnCommit) {
      this.assertFits(id, sizeOf(turn.messages));
      await super.commit(id, turn);
    }
  }
  t.same(await brokenQuotas(LosesTurns), [begun]);

  class Mute extends LimitedStore {
    override assertFits(id: SessionId, bytes: number): void {
      try {
        super.assertFits(id, bytes);
      } catch {
        throw new Error('no');
      }
    }
  }
  t.same(await brokenQuotas(Mute), [sessions, bytes, records]);
});

t.test('finds stores whose caps let a project push out another, or evict too much or too little', async (t) => {
  /** Evicts sessions and records beyond a cap. `victimOf` chooses from the projects of all. */
  class Capped extends PlainStore {
    max = 1_000;
    victimOf(projects: readonly string[]): string | undefined {
      const counts = [...Map.groupBy(projects, (project) => project)].map(([project, all]) => [project, all.length] as const);
      return counts.toSorted(([, a], [, b]) => b - a)[0]?.[0];
    }
    override async create(...[id, session]: Parameters<PlainStore['create']>) {
      await super.create(id, session);
      while (this.sessions.size > this.max) {
        const all = [...this.sessions.values()].map((one) => one.id);
        const project = this.victimOf(all.map((one) => one.project));
        const victim = all.find((one) => project === undefined || one.project === project);
        this.sessions.delete(this.keyOf(victim ?? id));
      }
    }
    override putAnswer(record: IdempotencyRecord) {
      super.putAnswer(record);
      while (this.kept.answers.size > this.max) {
        const all = [...this.kept.answers.values()].map((one) => one.record.key);
        const project = this.victimOf(all.map((one) => one.project));
        const victim = all.find((one) => project === undefined || one.project === project);
        this.kept.answers.delete(this.answerKeyOf(victim ?? record.key));
      }
    }
  }
  const [sessions, records] = [
    'S-42 evicts sessions of the project with the most',
    'S-42 evicts idempotency records of the project with the most',
  ];
  const broken = async (Store: typeof Capped) => {
    const capped = (max: number) => ({ store: Object.assign(new Store(), { max }) });
    const openCapped = { sessions: capped, idempotencyRecords: capped };
    const cases = casesOf((test) => sessionStoreContract(test, { open: () => ({ store: new Store() }), openCapped }));
    return failing(cases.filter(({ name }) => name.startsWith('S-42')));
  };
  t.same(await broken(Capped), []);

  class OldestOfAll extends Capped {
    override victimOf() {
      return undefined;
    }
  }
  t.same(await broken(OldestOfAll), [sessions, records]);

  class Uncapped extends Capped {
    override create = PlainStore.prototype.create;
    override putAnswer = PlainStore.prototype.putAnswer;
  }
  t.same(await broken(Uncapped), [sessions, records]);

  class Half extends Capped {
    override putAnswer(record: IdempotencyRecord) {
      const { max } = this;
      if (this.kept.answers.size === max) this.max = max / 2;
      super.putAnswer(record);
      this.max = max;
    }
  }
  t.same(await broken(Half), [records]);
});

t.test('finds a store that has side effects when it is registered', async (t) => {
  const { writeFileSync } = await import('node:fs');
  const { join } = await import('node:path');
  const name = 'registers without side effects';
  const registered = (register: (folder: string) => unknown) =>
    casesOf((test) => sessionStoreContract(test, { open: () => ({ store: new PlainStore() }), register })).filter(
      (one) => one.name === name,
    );
  t.same(await failing(registered(() => {})), []);
  t.same(await failing(registered((folder) => writeFileSync(join(folder, 'sessions.db'), ''))), [name]);
});
