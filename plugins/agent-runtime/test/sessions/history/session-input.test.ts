import type { Message } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import * as fc from 'fast-check';
import t from 'tap';
import { newMessages } from '../../../src/sessions/history/session-input.js';
import { user } from '../../harness.js';

const assistant = (content: string): Message => ({ role: 'assistant', content });
const system = (content: string): Message => ({ role: 'system', content });
const asks = (...ids: string[]): Message => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
});
const result = (id: string): Message => ({ role: 'tool', tool_call_id: id, content: 'r' });

function refusal(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return error;
  }
}

t.test('a new session stores all messages except system messages, which apply to this turn', async (t) => {
  const input = newMessages([], [system('s'), user('a'), assistant('b'), user('c')]);
  const { added } = input;
  t.strictSame(input.system, [system('s')]);
  t.strictSame(added, [user('a'), assistant('b'), user('c')]);
});

t.test(
  'an existing session adds the messages after the last assistant message; system messages apply wherever they are',
  async (t) => {
    const history = [user('a'), assistant('b')];
    const { system: said, added } = newMessages(history, [system('s'), user('a'), assistant('other'), user('c'), user('d')]);
    t.strictSame(added, [user('c'), user('d')]);
    t.strictSame(said, [system('s')]);
  },
);

t.test('tool results must answer exactly the open calls', async (t) => {
  const history = [user('a'), asks('1', '2')];
  t.strictSame(newMessages(history, [user('a'), asks('1', '2'), result('2'), result('1')]).added, [result('2'), result('1')]);
  t.throws(() => newMessages(history, [result('1')]), {
    code: 'invalid_request',
    options: { param: 'messages' },
    message: /missing: 2/,
  });
  t.match(
    refusal(() => newMessages(history, [result('1'), result('3')])),
    { options: { param: 'messages[1].tool_call_id' } },
  );
  t.match(
    refusal(() => newMessages([user('a'), assistant('b')], [result('1')])),
    { options: { param: 'messages[0].tool_call_id' } },
  );
});

t.test('a user message closes open calls, each with an error result', async (t) => {
  t.match(newMessages([user('a'), asks('1', '2'), result('1')], [user('never mind')]).added, [
    { role: 'tool', tool_call_id: '2', content: 'Error: the caller returned no result for this call.' },
    user('never mind'),
  ]);
});

t.test('input without new messages, or with unpaired calls, is refused with its place', async (t) => {
  t.match(
    refusal(() => newMessages([], [system('only')])),
    { code: 'invalid_request', options: { param: 'messages' } },
  );
  t.match(
    refusal(() => newMessages([user('a'), assistant('b')], [user('a'), assistant('b')])),
    { options: { param: 'messages' } },
  );
  t.match(
    refusal(() => newMessages([], [user('a'), assistant('b')])),
    { options: { param: 'messages' } },
  );
  t.match(
    refusal(() => newMessages([], [user('a'), asks('1'), user('b')])),
    { options: { param: 'messages[1]' } },
  );
  t.match(
    refusal(() => newMessages([], [user('a'), result('1'), user('b')])),
    { options: { param: 'messages[1]' } },
  );
});

t.test('the error for a result without its call names its place in the request, system messages included', (t) => {
  t.match(
    refusal(() => newMessages([user('a'), assistant('b')], [user('a'), assistant('b'), system('s'), result('1')])),
    { options: { param: 'messages[3].tool_call_id' } },
  );
  t.end();
});

t.test('any sequence of turns leaves a history that every provider accepts', async (t) => {
  const id = fc.constantFrom('1', '2', '3');
  const message: fc.Arbitrary<Message> = fc.oneof(
    fc.constant(user('u')),
    fc.constant(assistant('a')),
    fc.constant(system('s')),
    fc.uniqueArray(id, { minLength: 1 }).map((ids) => asks(...ids)),
    id.map(result),
  );
  const answer = fc.oneof(
    fc.constant(assistant('done')),
    fc.uniqueArray(id, { minLength: 1 }).map((ids) => asks(...ids)),
  );
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.array(message, { maxLength: 6 }), answer), { maxLength: 6 }), (turns) => {
        let history: Message[] = [];
        for (const [request, reply] of turns) {
          let input: ReturnType<typeof newMessages>;
          try {
            input = newMessages(history, request);
          } catch (error) {
            if (!(error instanceof TurnError) || error.code !== 'invalid_request') throw error;
            continue;
          }
          assertPaired([...history, ...input.added]);
          history = [...history, ...input.added, reply];
        }
      }),
      {
        numRuns: 2000,
        examples: [
          [
            [
              [[user('u')], asks('3', '1', '2')],
              [[result('2'), result('1'), user('u'), result('3')], assistant('done')],
            ],
          ],
        ],
      },
    ),
  );
});

/** Every call is followed by exactly its results, and no result stands alone. */
function assertPaired(messages: readonly Message[]): void {
  let open = new Set<string>();
  for (const message of messages) {
    if (message.role === 'system') continue;
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id))
        throw new Error(`orphan result ${message.tool_call_id} in ${JSON.stringify(messages)}`);
      continue;
    }
    if (open.size > 0) throw new Error(`open calls ${[...open]} in ${JSON.stringify(messages)}`);
    open = new Set(message.role === 'assistant' ? (message.tool_calls ?? []).map((call) => call.id) : []);
  }
  if (open.size > 0) throw new Error(`open calls ${[...open]} at the end of ${JSON.stringify(messages)}`);
}
