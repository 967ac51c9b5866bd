import t from 'tap';
import { sessionStoreContract } from '../../src/session-store/session-store-contract.js';
import { casesOf, failing } from '../failing.js';
import { failingCases, PlainStore } from './plain-store.js';

t.test('a store that keeps the contract passes, and every store that was opened is closed', async (t) => {
  t.same(await failingCases(PlainStore), []);
  let open = 0;
  const cases = casesOf((test) =>
    sessionStoreContract(test, {
      open: () => {
        open++;
        return { store: new PlainStore(), close: () => void open-- };
      },
    }),
  );
  t.same(await failing(cases), []);
  t.equal(open, 0);
  t.notOk(
    cases.some(({ name }) => name.includes('hour')),
    'without a clock to move, nothing is said of expiry',
  );
  t.notOk(
    cases.some(({ name }) => name.includes('opened again')),
    'a store that cannot be reopened has no durability cases',
  );
});

t.test('a store that is not well', async (t) => {
  class Unwell extends PlainStore {
    override async health() {
      return { ok: false, reason: 'the disk is full' };
    }
  }
  t.same(await failingCases(Unwell), ['reports that it works']);

  class Talkative extends PlainStore {
    override async health() {
      return { ok: true, sessions: 12 };
    }
  }
  t.same(await failingCases(Talkative), [], 'further fields are allowed');
});
