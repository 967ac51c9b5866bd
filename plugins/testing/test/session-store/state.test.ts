import type { StateChange } from '@plugboard/kernel';
import { type SessionId, type TurnCommit, VersionConflict } from '@plugboard/kernel/contracts';
import { MemoryState } from '@plugboard/store-memory';
import t from 'tap';
import { ManualClock } from '../../src/index.js';
import { sessionStoreContract } from '../../src/session-store/session-store-contract.js';
import { casesOf, failing } from '../failing.js';
import { failingCases, PlainStore, StoredData } from './plain-store.js';

/** The cases that fail for a store with this state. */
function failingWith(State: typeof MemoryState): Promise<readonly string[]> {
  return failingCases(
    class extends PlainStore {
      readonly #state = new State(this.clock);
      override get state() {
        return this.#state;
      }
    },
  );
}

/** The cases about the limit of keys that fail for a store with this state. */
function failingAtLimit(State: typeof MemoryState, Store = PlainStore): Promise<readonly string[]> {
  const clock = new ManualClock();
  const open = (maxKeys: number) => {
    const kept = { ...new StoredData(clock), state: new State(clock, { maxKeys }) };
    return { store: new Store(clock, kept) };
  };
  const openCapped = { stateKeys: open };
  const cases = casesOf((test) => sessionStoreContract(test, { open: () => open(1_000), openCapped, clock }));
  return failing(cases.filter(({ name }) => /keys? of the state|changes of the state/.test(name)));
}

t.test('finds state that entries share', async (t) => {
  const merged = 'all';
  class Shares extends MemoryState {
    override get = (_: string, key: string) => super.get(merged, key);
    override list = (_: string, page: Parameters<MemoryState['list']>[1]) => super.list(merged, page);
    override apply = (changes: readonly StateChange[]) => super.apply(changes.map((change) => ({ ...change, entry: merged })));
  }
  const found = await failingWith(Shares);
  t.ok(found.includes('isolates the state of entries'));
  t.ok(found.includes('lists keys of the state by prefix, in the order of their bytes, page by page'));
});

t.test('finds the wrong order, a missing limit, and half of a change', async (t) => {
  class ByUtf16 extends MemoryState {
    override async list(entry: string, page: Parameters<MemoryState['list']>[1]) {
      const all = await super.list(entry, { prefix: page.prefix });
      return all
        .toSorted((a, b) => (a.key < b.key ? -1 : 1))
        .filter(({ key }) => key > (page.after ?? ''))
        .slice(0, page.limit);
    }
  }
  const inOrder = 'lists keys of the state by prefix, in the order of their bytes, page by page';
  t.ok((await failingWith(ByUtf16)).includes(inOrder));

  class ReadsThenWrites extends MemoryState {
    override async change(changes: readonly StateChange[]) {
      for (const { entry, key, expected } of changes) {
        if (expected !== undefined && ((await this.get(entry, key)) ?? null) !== expected) return false;
      }
      return super.change(changes.map((change) => ({ ...change, expected: undefined })));
    }
  }
  const oneSucceeds = 'of several writers that expect the same value of the state, one succeeds';
  t.ok((await failingWith(ReadsThenWrites)).includes(oneSucceeds));
  t.notOk((await failingWith(MemoryState)).includes(oneSucceeds));

  class Half extends MemoryState {
    override async change(changes: readonly StateChange[]) {
      this.apply(changes.slice(0, -1));
      return super.change(changes.slice(-1));
    }
  }
  const refuses = 'refuses more keys of the state than an entry may have, and changes nothing';
  t.same(await failingAtLimit(Half), ['applies changes of the state that expect values, all or nothing', refuses]);
});

t.test('finds keys that expire never, later, or still count', async (t) => {
  class Never extends MemoryState {
    override apply(changes: readonly StateChange[]) {
      super.apply(changes.map(({ expiresIn: _, ...change }) => change));
    }
  }
  const [expired, withTurn, counted] = [
    'has no key of the state that has expired',
    'changes keys of the state that expire with a turn',
    'does not count keys of the state that have expired',
  ];
  t.same(await failingAtLimit(Never), [expired, withTurn, counted]);

  class KeepsExpiry extends MemoryState {
    readonly #before = new Map<string, number | undefined>();
    override apply(changes: readonly StateChange[]) {
      for (const { key, expiresIn } of changes) this.#before.set(key, this.#before.get(key) ?? expiresIn);
      super.apply(changes.map((change) => ({ ...change, expiresIn: this.#before.get(change.key) })));
    }
  }
  t.same(await failingAtLimit(KeepsExpiry), [expired]);
  t.same(await failingAtLimit(MemoryState), []);
});

t.test('finds changes that expect a value and are applied without it', async (t) => {
  class OnlyFirst extends MemoryState {
    override conflict(changes: readonly StateChange[]) {
      return super.conflict(changes.slice(0, 1));
    }
  }
  t.ok((await failingWith(OnlyFirst)).includes('applies changes of the state that expect values, all or nothing'));

  class NotInTurns extends PlainStore {
    override commit(id: SessionId, { state, ...turn }: TurnCommit) {
      return super.commit(id, { ...turn, state: state?.map((change) => ({ ...change, expected: undefined })) });
    }
  }
  t.same(await failingCases(NotInTurns), ['stores no turn whose changes of the state expect another value']);
});

t.test('finds a commit that loses or ignores the changes of the state', async (t) => {
  class Ignores extends PlainStore {
    override commit(id: SessionId, { state, ...turn }: TurnCommit) {
      return super.commit(id, turn);
    }
  }
  t.ok((await failingCases(Ignores)).includes('changes the state with a turn, or not at all'));

  class After extends PlainStore {
    override async commit(id: SessionId, { state = [], ...turn }: TurnCommit) {
      await super.commit(id, turn);
      if (!(await this.state.change(state))) throw new VersionConflict(0, 0);
    }
  }
  const conflicting = 'stores no turn whose changes of the state expect another value';
  t.same(await failingCases(After), [conflicting]);
  t.same(await failingAtLimit(MemoryState, After), [conflicting, 'commits no turn whose changes of the state are refused']);
  t.same(await failingCases(PlainStore), []);
});
