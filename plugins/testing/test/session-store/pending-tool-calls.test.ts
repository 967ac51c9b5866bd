import type { Message } from '@plugboard/kernel';
import type { PendingToolCallsOwner } from '@plugboard/kernel/contracts';
import t from 'tap';
import { failingCases, PlainStore } from './plain-store.js';

t.test('finds faulty pending tool calls', async (t) => {
  class OneOwner extends PlainStore {
    override async loadCalls(owner: PendingToolCallsOwner, callId: string) {
      for (const key of this.calls.keys()) if (key.endsWith(`,${JSON.stringify(callId)}]`)) return this.calls.get(key)?.messages;
      return super.loadCalls(owner, callId);
    }
  }
  t.ok((await failingCases(OneOwner)).includes('loads no pending turn for an unknown call or another owner'));

  class Once extends PlainStore {
    override async loadCalls(owner: PendingToolCallsOwner, callId: string) {
      const found = await super.loadCalls(owner, callId);
      this.calls.delete(this.keyOf({ ...owner, key: callId }));
      return found;
    }
  }
  t.ok((await failingCases(Once)).includes('loads a pending turn by any of its calls, any number of times'));

  class Forever extends PlainStore {
    override async loadCalls(owner: PendingToolCallsOwner, callId: string) {
      return this.calls.get(this.keyOf({ ...owner, key: callId }))?.messages;
    }
  }
  t.ok((await failingCases(Forever)).includes('keeps a pending turn for one hour'));

  class FirstStays extends PlainStore {
    override async saveCalls(owner: PendingToolCallsOwner, callIds: readonly string[], messages: readonly Message[]) {
      await super.saveCalls(
        owner,
        callIds.filter((callId) => !this.calls.has(this.keyOf({ ...owner, key: callId }))),
        messages,
      );
    }
  }
  t.same(await failingCases(FirstStays), ['replaces a pending turn that has the same call']);

  class AsSession extends PlainStore {
    override async saveCalls(owner: PendingToolCallsOwner, callIds: readonly string[], messages: readonly Message[]) {
      await super.saveCalls(owner, callIds, messages);
      for (const key of callIds) this.add({ ...owner, key }, { turns: [messages] });
    }
  }
  t.same(await failingCases(AsSession), ['keeps pending tool calls apart from sessions']);
});
