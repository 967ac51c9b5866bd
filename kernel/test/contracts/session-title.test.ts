import type { Message } from '@plugboard/kernel';
import { sessionTitle } from '@plugboard/kernel/contracts';
import t from 'tap';

const titleOf = (content: string) => sessionTitle([{ role: 'user', content }]);

t.test('the title is the first text of the user, on one line', async (t) => {
  t.equal(titleOf('  Where is\n\n\tmy order? \u0007'), 'Where is my order?');
  t.equal(titleOf('\u0000\n '), undefined);
  const messages: Message[] = [
    { role: 'system', content: 'You are helpful.' },
    { role: 'assistant', content: 'Hello!' },
    { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is ' },
        { type: 'text', text: 'this?' },
      ],
    },
  ];
  t.equal(sessionTitle(messages), 'What is this?');
  t.equal(sessionTitle(messages.slice(0, 3)), undefined);
  t.equal(titleOf('<b>bold</b>'), '<b>bold</b>', 'markup is text');
});

t.test('a title has at most 80 characters and no half of one', async (t) => {
  t.equal(titleOf('x'.repeat(80)), 'x'.repeat(80));
  t.equal(titleOf('x'.repeat(81)), `${'x'.repeat(79)}…`);
  t.equal(titleOf('🧮'.repeat(10_000)), `${'🧮'.repeat(79)}…`);
  t.equal(titleOf('\ud83d'), '\ufffd');
  t.equal(titleOf(`${' '.repeat(5_000)}late`), 'late');
});
