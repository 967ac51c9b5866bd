import assert from 'node:assert/strict';
import { ProtocolError } from '@plugboard/openai-protocol';
import fc from 'fast-check';
import t from 'tap';
import { messagesOf } from '../src/items/items-to-messages.js';
import { itemsOf } from '../src/items/turn-to-items.js';
import { VIEW } from './support/conversation.js';

const text = fc.string({ unit: 'grapheme', maxLength: 20 });
const some = text.filter((value) => value !== '');
const name = fc.stringMatching(/^[a-zA-Z0-9_-]{1,64}$/).filter((value) => value !== 'files__read');
const file = fc.record({ type: fc.constant('input_file' as const), filename: text, file_data: text }, { noNullPrototype: true });
const image = fc.record(
  {
    type: fc.constant('input_image' as const),
    image_url: fc.webUrl(),
    detail: fc.constantFrom('auto', 'low', 'high'),
    file_id: fc.constant(null),
  },
  { noNullPrototype: true },
);
const inputText = (value: string) => ({ type: 'input_text' as const, text: value });
const outputText = (value: string) => ({ type: 'output_text' as const, text: value, annotations: [] });

const user = fc
  .oneof(
    text.map((value) => [inputText(value)]),
    fc
      .tuple(image, fc.array(fc.oneof(image, file, text.map(inputText)), { maxLength: 3 }))
      .map(([first, rest]) => [first, ...rest]),
  )
  .map((content) => [{ type: 'message', role: 'user', status: 'completed', content }]);

const refusing = some.map((refusal) => ({ type: 'refusal' as const, refusal }));
const assistant = fc
  .oneof(
    text.map((value) => [outputText(value)]),
    refusing.map((refusal) => [refusal]),
    fc.tuple(some.map(outputText), refusing).map(([said, refusal]) => [said, refusal]),
  )
  .map((content) => [{ type: 'message', role: 'assistant', status: 'completed', content }]);

/** What one step calls, and what came of each call. */
const step = fc
  .uniqueArray(fc.tuple(some, name, text, text), { minLength: 1, maxLength: 3, selector: ([id]) => id })
  .map((calls) => [
    ...calls.map(([call_id, name, args]) => ({ type: 'function_call', status: 'completed', call_id, name, arguments: args })),
    ...calls.map(([call_id, , , output]) => ({ type: 'function_call_output', status: 'completed', call_id, output })),
  ]);

/** An assistant with empty text and tool calls equals one with tool calls only. */
const conversation = fc
  .array(fc.oneof(user, assistant, step), { maxLength: 5 })
  .map((groups) => groups.flat().slice(0, 20))
  .filter((items) =>
    items.every((item, index) => {
      if (item.type !== 'message' || items[index + 1]?.type !== 'function_call') return true;
      const [part] = (item as { content: { text?: string }[] }).content;
      return part?.text !== '';
    }),
  );

/** Objects with the names that items have. */
const odd = fc.dictionary(
  fc.constantFrom('type', 'role', 'content', 'call_id', 'name', 'arguments', 'output', 'text'),
  fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('message', 'function_call', 'user', 'assistant', 'input_text')),
);

t.test('items are returned as they were sent, except for their ids', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(conversation, (items) => {
        const { messages } = messagesOf(items, undefined);
        const back = itemsOf({ turn: 1, messages }, VIEW).map(({ id: _, ...item }) => item);
        assert.deepEqual(back, items);
      }),
      { numRuns: 300 },
    ),
  );
});

t.test('returned items can be sent again and stay the same', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(conversation, (items) => {
        const shown = itemsOf({ turn: 1, messages: messagesOf(items, undefined).messages }, VIEW);
        assert.deepEqual(itemsOf({ turn: 1, messages: messagesOf(shown, undefined).messages }, VIEW), shown);
      }),
      { numRuns: 300 },
    ),
  );
});

t.test('any item is accepted or refused with a protocol error', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.jsonValue(), odd), { maxLength: 4 }), (items) => {
        try {
          itemsOf({ turn: 1, messages: messagesOf(items, undefined).messages }, VIEW);
        } catch (error) {
          assert.ok(error instanceof ProtocolError && error.status === 400, String(error));
          assert.match(error.body.error.param ?? '', /^items\[\d/);
        }
      }),
      { numRuns: 1000 },
    ),
  );
});
