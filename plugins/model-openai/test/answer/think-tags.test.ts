import assert from 'node:assert/strict';
import type { ModelEvent } from '@plugboard/kernel';
import fc from 'fast-check';
import t from 'tap';
import { ThinkTags } from '../../src/answer/think-tags.js';

/** The reasoning and the text of pieces, joined. */
function split(...pieces: readonly string[]): { reasoning: string; text: string } {
  const tags = new ThinkTags();
  const events: ModelEvent[] = [];
  for (const piece of pieces) tags.add(piece, events);
  tags.end(events);
  const joined = (type: string) => events.map((event) => (event.type === type && 'text' in event ? event.text : '')).join('');
  return { reasoning: joined('reasoning'), text: joined('text') };
}

t.test('splits thinking at the beginning of the text off', async (t) => {
  t.same(split('<think>\nHm.\n</think>\n\nYes.'), { reasoning: 'Hm.\n', text: 'Yes.' });
  t.same(split('\n<thought>Hm.</thought>Yes.'), { reasoning: 'Hm.', text: 'Yes.' });
  t.same(split('<thinking></thinking>Yes.'), { reasoning: '', text: 'Yes.' });
  t.same(split('<think>Hm.'), { reasoning: 'Hm.', text: '' }, 'without an end');
  t.same(split('<think>a < b </thin'), { reasoning: 'a < b </thin', text: '' });
});

t.test('keeps tags at any other place', async (t) => {
  for (const text of ['Yes. <think>no</think>', '<b>bold</b>', '<', '<thin', '<thin air', '', ' ', 'think>'])
    t.same(split(text), { reasoning: '', text });
});

t.test('splits the same however the text is cut into pieces', async () => {
  const text = fc.constantFrom(
    '<think>Hm, a < b.</think>\n\nYes <think>.',
    ' <thought>x</think></thought>y',
    '<thinker>',
    'plain <think>',
  );
  fc.assert(
    fc.property(text, fc.array(fc.nat(6)), (whole, sizes) => {
      const pieces: string[] = [];
      let from = 0;
      for (const size of sizes) {
        pieces.push(whole.slice(from, from + size));
        from += size;
      }
      pieces.push(whole.slice(from));
      assert.deepEqual(split(...pieces), split(whole));
    }),
    { numRuns: 500 },
  );
});
