import type { Message } from '@plugboard/kernel';
import type { StoredSession } from '@plugboard/kernel/contracts';
import t from 'tap';
import { SessionHistory } from '../../src/conversation/session-history.js';
import { storeWith, user } from '../harness.js';

const jsonSize = (messages: readonly Message[]) =>
  messages.reduce((sum, message) => sum + Buffer.byteLength(JSON.stringify(message)), 0);

t.test('S-37 conversations in memory count their messages and the JSON texts kept with them', async (t) => {
  const loaded: Message[] = [user('x'.repeat(1000)), { role: 'assistant', content: 'é'.repeat(500) }];
  const stored: StoredSession = { version: 1, turns: 1, messages: loaded, bytes: jsonSize(loaded) };
  const store = storeWith({ load: async () => stored, commit: async () => {} });
  let charged = 0;
  const histories = ['first', 'second'].map(
    (key) => new SessionHistory({ project: 'p', agent: 'a', key }, store, (change) => (charged += change)),
  );
  for (const history of histories) await history.current();
  t.equal(charged, 2 * 2 * jsonSize(loaded));

  const added: Message[] = [user('and now?'), { role: 'assistant', content: 'y'.repeat(3000) }];
  for (const history of histories) await history.commit(await history.current(), { turnId: 'turn_1', messages: added });
  t.equal(charged, 2 * 2 * jsonSize([...loaded, ...added]));

  for (const history of histories) history.release();
  t.equal(charged, 0);
});
