import type { AgentEvent } from '@plugboard/kernel';
import { ProtocolError } from '@plugboard/openai-protocol';
import fc from 'fast-check';
import t from 'tap';
import { parseSession } from '../src/request/named-session.js';
import { requestSchema } from '../src/request/request-schema.js';
import { parseRequest } from '../src/request/validate.js';
import { chunksOf, finished, HI, startRoute, textOf } from './support/route.js';

/** Values that look like what a field may hold, so that more than its type is tried. */
const wild = fc.oneof(
  fc.jsonValue(),
  fc.constantFrom('auto', 'required', 'text', 'low', '', ' ', '\ud800', 'x'.repeat(600)),
  fc.constantFrom(0, 1, -1, 2, 0.5, Number.POSITIVE_INFINITY, 2 ** 53, 1e21),
  fc.record({ type: fc.constantFrom('text', 'function', 'json_schema', 'allowed_tools', 'bogus', 7) }, { requiredKeys: [] }),
  fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 20 }),
);

/**
 * What is right mostly, so that one fault is not hidden behind another, and some requests have
 * none.
 */
const mostly = (right: fc.Arbitrary<unknown>) => fc.oneof({ weight: 19, arbitrary: right }, { weight: 1, arbitrary: wild });

const text = fc.string({ unit: 'binary' });
const part = fc.record({ type: mostly(fc.constant('text')), text: mostly(text) });
const message = fc.record(
  {
    role: mostly(fc.constantFrom('system', 'developer', 'user', 'assistant')),
    content: mostly(fc.oneof(text, fc.array(mostly(part), { maxLength: 3 }))),
    name: mostly(text),
    refusal: mostly(text),
    reasoning_content: wild,
  },
  { requiredKeys: ['role', 'content'] },
);

const fields = ['model', ...Object.keys(requestSchema.properties), '__proto__', 'constructor', 'toString'];
const body = fc
  .tuple(
    fc.array(fc.tuple(fc.string(), wild), { maxLength: 4 }),
    fc.array(fc.tuple(fc.constantFrom(...fields), wild), { maxLength: 2 }),
    mostly(fc.array(mostly(message), { minLength: 1, maxLength: 3 })),
  )
  .map(([extras, known, messages]) => Object.fromEntries([...extras, ['model', 'a'], ['messages', messages], ...known]));

t.test('R-091 any JSON value gets an answer or a client error', async (t) => {
  const { post, turns } = startRoute({ target: { input: ['text'] } });
  const runs = 3_000;
  await fc.assert(
    fc.asyncProperty(fc.oneof({ weight: 1, arbitrary: fc.jsonValue() }, { weight: 9, arbitrary: body }), async (value) => {
      try {
        const reply = await post(value);
        return reply.status === 200;
      } catch (error) {
        return (
          error instanceof ProtocolError && error.status < 500 && JSON.parse(JSON.stringify(error.body)).error.message !== ''
        );
      }
    }),
    { numRuns: runs },
  );
  t.ok(turns.length > runs / 10 && turns.length < (runs * 9) / 10, 'of either kind there were many');
});

t.test('R-091 an accepted request matches the schema', async () => {
  await fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (extras) => {
      const { model, messages } = parseRequest({ ...withoutKnown(extras), model: 'a', messages: HI });
      return model === 'a' && messages.length === 1;
    }),
  );
});

t.test('C-135 any text is a key, blank, or a client error', async () => {
  const value = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: fc.constantFrom('\ud800', '\0', ' ', 'a', 'é') }));
  const bytes = fc.uint8Array({ maxLength: 20 }).map((octets) => Buffer.from(octets).toString('latin1'));
  await fc.assert(
    fc.property(value, value, fc.array(bytes, { maxLength: 2 }), (user, session_id, lines) => {
      const request = {
        headers: lines.length > 0 ? { 'x-session-id': lines.join(', ') } : {},
        rawHeaders: lines.flatMap((line) => ['x-session-id', line]),
      };
      try {
        const named = parseSession({ model: 'a', messages: [], user, session_id }, request, ['session_id', 'header', 'user']);
        if (named === undefined) return true;
        const key = 'key' in named ? named.key : named.conversation;
        return key.trim() !== '' && key.isWellFormed() && !/\p{Cc}/u.test(key);
      } catch (error) {
        return error instanceof ProtocolError && error.status === 400;
      }
    }),
    { numRuns: 2_000 },
  );
});

t.test('C-095 C-106 the concatenated deltas equal the plain answer', async () => {
  const toolCall: AgentEvent = { type: 'tool-call', id: 'c', name: 'f', arguments: '{}', tool: { entry: 'tools.f', name: 'f' } };
  const noise = fc.constantFrom<AgentEvent[]>({ type: 'reasoning', text: 'Hm.' }, toolCall);
  const piece = fc
    .tuple(fc.string({ unit: 'binary' }), fc.boolean())
    .map(([text, atHand]): AgentEvent => ({ type: 'text', text, json: atHand ? JSON.stringify(text).slice(1, -1) : undefined }));
  const answer = fc.array(
    fc.array(fc.oneof(piece, fc.constant<AgentEvent>({ type: 'reasoning', text: 'Hm.' })), { maxLength: 4 }),
    { maxLength: 5 },
  );
  await fc.assert(
    fc.asyncProperty(fc.array(noise, { maxLength: 3 }), answer, async (before, batches) => {
      const step = (step: number): AgentEvent => ({ type: 'step', step, connection: 'fast' });
      const turn = [[step(1), ...before], [step(2)], ...batches, [finished]];
      const whole = await startRoute({ batches: turn }).ask();
      const streamed = await chunksOf(await startRoute({ batches: turn }).ask({ stream: true }));
      const { choices } = whole.body as unknown as { choices: [{ message: { content: string } }] };
      return textOf(streamed) === choices[0].message.content;
    }),
  );
});

function withoutKnown(extras: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(extras).filter(([name]) => !fields.includes(name)));
}
