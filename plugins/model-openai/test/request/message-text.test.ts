import t from 'tap';
import { messageText } from '../../src/request/request-body.js';

/** A message that counts how often it is serialized. */
function counted(content: string) {
  let reads = 0;
  const message = {
    role: 'user',
    get content() {
      reads++;
      return content;
    },
  };
  return { message, reads: () => reads };
}

t.test('serializes a message once and keeps the text with the object', async (t) => {
  const { message, reads } = counted('Grüße "quoted"');
  t.equal(messageText(message), '{"role":"user","content":"Grüße \\"quoted\\""}');
  t.equal(messageText(message), messageText({ ...message }));
  t.equal(reads(), 2, 'once for the message, and once for its copy, which may differ');
});

t.test('the text of a large message is not kept: it would double the memory of a turn', async (t) => {
  const { message, reads } = counted('x'.repeat(20_000));
  for (let times = 0; times < 2; times++) t.equal(messageText(message).length, 20_028);
  t.equal(reads(), 2);
});

t.test('nothing is kept with a frozen message', async (t) => {
  const { message, reads } = counted('x');
  Object.freeze(message);
  for (let times = 0; times < 2; times++) t.equal(messageText(message), '{"role":"user","content":"x"}');
  t.equal(reads(), 2);
});
