import t from 'tap';
import type { Message } from '../../src/contracts/messages/message.js';
import { knownMessageJson, messageJson, messageSize } from '../../src/contracts/messages/message-json.js';

t.test('serializes a message once and keeps the text with the object', async (t) => {
  let reads = 0;
  const message: Message = {
    role: 'user',
    get content() {
      reads++;
      return 'Grüße "quoted"';
    },
  };
  t.equal(knownMessageJson(message), undefined);
  t.equal(messageJson(message), '{"role":"user","content":"Grüße \\"quoted\\""}');
  t.equal(messageJson(message), knownMessageJson(message));
  t.equal(messageSize(message), 46, 'in bytes');
  t.equal(reads, 1);
  t.equal(knownMessageJson({ ...message }), undefined, 'a copy may differ');
});

t.test('the text of a large message is not kept: it would double the memory of a turn', async (t) => {
  const message: Message = { role: 'user', content: 'x'.repeat(20_000) };
  t.equal(messageJson(message), JSON.stringify(message));
  t.equal(knownMessageJson(message), undefined);
  t.equal(messageSize(message), Buffer.byteLength(JSON.stringify(message)));
  t.equal(messageJson(message), JSON.stringify(message), 'also when its size is known');
});

t.test('the size of a message that was not serialized before', async (t) => {
  t.equal(messageSize({ role: 'user', content: 'x' }), 29);
});
