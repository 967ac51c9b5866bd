import t from 'tap';
import { sessionStoreContract } from '../../src/session-store/session-store-contract.js';
import { casesOf } from '../failing.js';
import { PlainStore } from './plain-store.js';

t.test('names the methods that a store lacks, in the first case', async (t) => {
  for (const [lacking, names] of [
    [{ fork: undefined, idempotency: { claim: async () => undefined } }, 'fork, idempotency.put, idempotency.release'],
    [{ pendingToolCalls: undefined }, 'pendingToolCalls.save, pendingToolCalls.find, pendingToolCalls.load'],
  ] as const) {
    const store = Object.assign(new PlainStore(), lacking) as unknown as PlainStore;
    const [first] = casesOf((test) => sessionStoreContract(test, { open: () => ({ store }) }));
    await t.rejects(async () => first?.run(), { message: `the session store lacks these methods: ${names}\n` });
  }
});
