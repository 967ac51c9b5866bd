import type { Message } from '@plugboard/kernel';
import t from 'tap';
import { hasExtras, refuseExtras, withOwnExtras } from '../../../src/engine/messages/extra.js';
import { prefixOf } from '../../../src/engine/messages/prefix.js';

t.test('what a provider refused stays out when the session is read from its store again', async (t) => {
  const user: Message = { role: 'user', content: 'Hi' };
  const answer = (data: string): Message => ({
    role: 'assistant',
    content: 'Hello',
    extra: { connection: 'claude', prefix: prefixOf([user], []), data: { signature: data, of: 'a' } },
  });
  const conversation = (data: string): readonly Message[] => [user, answer(data), { role: 'user', content: 'Again' }];
  const isSent = (messages: readonly Message[]) => withOwnExtras(messages, 'claude', []).some(hasExtras);

  const inMemory = conversation('one');
  t.ok(isSent(inMemory));
  refuseExtras(inMemory);
  t.notOk(isSent(inMemory));
  const [first, second, third] = structuredClone(inMemory);
  const { extra, ...rest } = second as Extract<Message, { role: 'assistant' }>;
  const reordered = { ...rest, extra: { ...extra, connection: 'claude', data: { of: 'a', signature: 'one' } } };
  t.notOk(isSent([first, reordered, third] as Message[]), 'a store may return the keys in another order');
  t.ok(isSent(conversation('two')), 'another answer in its place is sent');
});
