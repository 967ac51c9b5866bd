import type { Message } from '@plugboard/kernel';
import * as fc from 'fast-check';
import t from 'tap';
import type { HistoryOptions } from '../../../src/engine/directory/agent.js';
import { bytesOf, tokensOf } from '../../../src/engine/messages/message-size.js';
import type { HistoryBudget } from '../../../src/engine/messages/newest-turns.js';
import { historyBudget, historyView } from '../../../src/sessions/history/history-view.js';
import { TokenCount } from '../../../src/sessions/history/token-count.js';
import { answerWith, collect, endOf, request, ScriptedModel, startRuntime, user } from '../../harness.js';

const assistant = (content: string): Message => ({ role: 'assistant', content });
const asks = (id: string): Message => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }],
});
const result = (id: string): Message => ({ role: 'tool', tool_call_id: id, content: 'r' });
const NEW = [user('x')];
const EVERYTHING: HistoryBudget = { tokens: Number.POSITIVE_INFINITY, messages: Number.POSITIVE_INFINITY };
const size = (messages: readonly Message[]) => messages.reduce((sum, message) => sum + tokensOf(message), 0);

const first = [user('one'), asks('1'), result('1'), assistant('done')];
const second = [user('two'), user('and'), assistant('fine')];
const third = [user('three'), assistant('ok')];
const all = [...first, ...second, ...third];

const view = (
  history: readonly Message[],
  room: Partial<HistoryBudget>,
  policy: HistoryOptions['policy'] = 'truncate',
  added = NEW,
) => historyView({ messages: history }, added, policy, { ...EVERYTHING, ...room });

t.test('a history that fits is sent whole, followed by the new messages', async (t) => {
  t.strictSame(view(all, { tokens: size(all) }), [...all, ...NEW]);
});

t.test('a history that does not fit loses its oldest turns first', async (t) => {
  t.strictSame(view(all, { tokens: size(all) - 1 }), [...second, ...third, ...NEW]);
  t.strictSame(view(all, { tokens: size(third) }), [...third, ...NEW]);
  t.strictSame(view(all, { tokens: 0 }), NEW);
  t.strictSame(view(all, { tokens: -5 }), NEW);
});

t.test('the number of messages can be limited', async (t) => {
  t.strictSame(view(all, { messages: 8 }), [...second, ...third, ...NEW]);
  t.strictSame(view(all, { messages: 2 }), [...third, ...NEW]);
  t.strictSame(view(all, { messages: 0 }), NEW);
  t.strictSame(historyBudget({ policy: 'truncate', maxMessages: 3, maxTokens: 50 }, 1e6), { tokens: 50, messages: 3 });
  t.strictSame(historyBudget({ policy: 'truncate', maxMessages: 3, maxTokens: 50 }, 40), { tokens: 40, messages: 3 });
});

t.test('the beginning of a long view stays for several turns, and the view keeps most of what fits', async (t) => {
  const turns = Array.from({ length: 200 }, (_, turn) => [user(`${turn}`), assistant('a')]);
  const begins = new Set<Message | undefined>();
  let stays = 0;
  for (let count = 60; count <= 200; count++) {
    const given = view(turns.slice(0, count).flat(), { messages: 100 });
    t.ok(given.length - 1 > 75 && given.length - 1 <= 100, `${given.length - 1} messages`);
    if (begins.has(given[0])) stays++;
    begins.add(given[0]);
  }
  t.equal(begins.size, 18, 'eight turns each');
  t.equal(stays, 123);
});

t.test('the turn with pending client tool calls is always sent with their results', async (t) => {
  const open = [...all, user('call'), asks('2')];
  t.strictSame(view(open, { tokens: 0 }, 'truncate', [result('2')]), [user('call'), asks('2'), result('2')]);
  const old = [
    ...all,
    user('call'),
    { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } } as const,
  ];
  const answer: Message = { role: 'function', name: 'f', content: 'r' };
  t.strictSame(view(old, { tokens: 0 }, 'truncate', [answer]), [...old.slice(-2), answer]);
});

t.test('error: a conversation that does not fit is refused before the run', async (t) => {
  t.throws(() => view(all, { tokens: size(all) - 1 }, 'error'), { code: 'context_length_exceeded' });
  t.strictSame(view(all, { tokens: size(all) }, 'error'), [...all, ...NEW]);
});

t.test('R-084 for any budget a view is the end of the conversation in whole turns and fits', async (t) => {
  const turn: fc.Arbitrary<Message[]> = fc.oneof(
    fc.string().map((text) => [user(text), assistant('a')]),
    fc.boolean().map(() => [user('u'), asks('1'), result('1'), assistant('a')]),
  );
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 8 }), fc.integer({ min: 0, max: 300 }), (turns, tokens) => {
        const history = turns.flat();
        const given = view(history, { tokens }).slice(0, -NEW.length);
        const begins = turns.map((_, i) => turns.slice(i).flat().length);
        return (
          size(given) <= tokens &&
          [...begins, 0].includes(given.length) &&
          given.every((message, i) => message === history[history.length - given.length + i])
        );
      }),
    ),
  );
});

t.test('R-084 a conversation whose tokens are counted as it grows has the same views', async (t) => {
  const image: Message = { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:,' } }] };
  const turn: fc.Arbitrary<Message[]> = fc.oneof(
    fc.string().map((text) => [user(text), assistant('a')]),
    fc.constant<Message[]>([image, assistant('a')]),
  );
  const room = fc.record({ tokens: fc.integer({ min: -10, max: 4_000 }), messages: fc.integer({ min: 0, max: 16 }) });
  fc.assert(
    fc.property(fc.array(fc.tuple(turn, room), { maxLength: 8 }), (turns) => {
      const messages: Message[] = [];
      const count = new TokenCount();
      for (const [said, budget] of turns) {
        messages.push(...said);
        const bytes = messages.reduce((sum, message) => sum + bytesOf(message), 0);
        t.strictSame(historyView({ messages, bytes, count }, NEW, 'truncate', budget), view(messages, budget));
      }
    }),
    { numRuns: 30 },
  );
});

t.test('R-084 the model receives what fits its window beside prompt, tools and answer, and the rest stays stored', async (t) => {
  const model = new ScriptedModel(() => answerWith('a'.repeat(400)));
  Object.assign(model, { contextWindow: 1000 });
  const app = await startRuntime({ agents: { assistant: { model: 'fast', system: 'Be brief.' } }, models: { fast: model } });
  const say = () => collect(app.runtime.run(request(app.target(), { session: { key: 's' }, messages: [user('q'.repeat(400))] })));
  for (let n = 0; n < 8; n++) t.match(endOf(await say()), { type: 'finished' });
  const sent = model.asked.at(-1)?.messages ?? [];
  t.equal(sent.length, 6, 'the prompt, two turns, and the new message');
  t.match(sent[0], { role: 'system' });
  t.ok(size(sent) <= 750);
  t.equal((await app.store.load({ project: 'default', agent: 'assistant', key: 's' })).messages.length, 16);
});

t.test('history: error refuses a turn whose conversation does not fit and stores nothing', async (t) => {
  const app = await startRuntime({
    agents: { assistant: { model: 'fast', history: { policy: 'error', maxMessages: 2 } } },
    models: { fast: new ScriptedModel(() => answerWith('x')) },
  });
  const say = () => collect(app.runtime.run(request(app.target(), { session: { key: 's' } })));
  await say();
  t.match(endOf(await say()), { type: 'finished' });
  t.match(await say(), [{ type: 'failed', failure: { code: 'context_length_exceeded' } }]);
  t.equal((await app.store.load({ project: 'default', agent: 'assistant', key: 's' })).version, 2);
});

t.test('a request may require the whole history, whatever its agent’s policy', async (t) => {
  const world = await startRuntime({
    agents: { assistant: { model: 'fast', history: { policy: 'truncate', maxMessages: 2 } } },
    models: { fast: new ScriptedModel(() => answerWith('x')) },
  });
  const say = (wholeHistory: boolean) =>
    collect(world.runtime.run(request(world.target(), { session: { key: 's' }, wholeHistory })));
  for (let n = 0; n < 2; n++) t.match(endOf(await say(true)), { type: 'finished' });
  t.match(await say(true), [{ type: 'failed', failure: { code: 'context_length_exceeded' } }]);
  t.match(endOf(await say(false)), { type: 'finished' });
});
