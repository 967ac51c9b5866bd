import t from 'tap';
import type { Message, ParkOwner } from '../../../src/index.js';
import { broken, PlainStore } from './plain-store.js';

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
      for (const key of callIds) this.add({ ...owner, key }, { turns: [messages] });
    }
  }
  t.same(await broken(AsSession), ['parks nothing in a session']);
});
