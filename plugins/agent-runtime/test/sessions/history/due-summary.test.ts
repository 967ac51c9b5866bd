import type { Message } from '@plugboard/kernel';
import * as fc from 'fast-check';
import t from 'tap';
import { tokensOf } from '../../../src/engine/messages/message-size.js';
import type { HistoryBudget } from '../../../src/engine/messages/newest-turns.js';
import { dueSummary } from '../../../src/sessions/history/due-summary.js';
import { historyView, tokensOfSummary } from '../../../src/sessions/history/history-view.js';
import { user } from '../../harness.js';

const ROOM: HistoryBudget = { tokens: Number.POSITIVE_INFINITY, messages: Number.POSITIVE_INFINITY };
const NEW = [user('new')];
const assistant = (content: string): Message => ({ role: 'assistant', content });
const asks = (id: string): Message => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }],
});
const result = (id: string): Message => ({ role: 'tool', tool_call_id: id, content: 'r' });
const size = (messages: readonly Message[]) => messages.reduce((sum, message) => sum + tokensOf(message), 0);
/** So many turns of 200 tokens. */
const turns = (count: number): Message[] =>
  Array.from({ length: count }, () => [user('q'.repeat(370)), assistant('a'.repeat(365))]).flat();
const due = (
  messages: readonly Message[],
  room: Partial<HistoryBudget>,
  summary?: { messages: number; text: string },
  added = NEW,
) => dueSummary({ messages, summary }, added, 'summarize', { ...ROOM, ...room });

t.test('a summary is due if the view would fill more than 80 % of its budget, and reduces it to half', async (t) => {
  t.equal(size(turns(1)), 200);
  t.equal(due(turns(4), { tokens: 1000 }), undefined);
  t.strictSame(due(turns(4), { tokens: 999 }), { messages: 6, earlier: undefined, tokens: 249 }, 'one turn, and a summary');
  t.strictSame(due(turns(12), { tokens: 2000 }), { messages: 20, earlier: undefined, tokens: 500 });
  t.match(due(turns(700), { tokens: 100_000 }), { tokens: 4096 }, 'whatever the room, a summary is short');
});

t.test('a limit of messages counts like one of tokens', async (t) => {
  t.equal(due(turns(4), { messages: 10 }), undefined);
  t.match(due(turns(5), { messages: 10 }), { messages: 6 });
  t.match(due(turns(1), { messages: 0 }), { messages: 2 });
});

t.test('the newest turn is kept verbatim if it fits beside a summary', async (t) => {
  const large = [user('q'.repeat(2400)), assistant('ok')];
  t.match(due([...turns(2), ...large], { tokens: 1000 }), { messages: 4 });
  t.match(due([...turns(2), ...large], { tokens: 800 }), { messages: 6 });
  t.equal(due(large, { tokens: size(large) }), undefined, 'there are no older messages');
  t.match(due(large, { tokens: size(large) - 1 }), { messages: 2 });
});

t.test('a turn with pending client tool calls is never summarized', async (t) => {
  const open = [...turns(4), user('q'.repeat(4000)), asks('1')];
  t.match(due(open, { tokens: 1000 }, undefined, [result('1')]), { messages: 8 });
  t.equal(due(open, { tokens: 1000 }, { messages: 8, text: 'x' }, [result('1')]), undefined);
});

t.test('an existing summary counts, is part of the next one, and is replaced only to cover more turns', async (t) => {
  const summary = { messages: 6, text: 's'.repeat(100) };
  const used = size(turns(4)) + tokensOfSummary(summary.text);
  t.equal(due(turns(7), { tokens: Math.ceil(used / 0.8) }, summary), undefined);
  t.strictSame(due(turns(7), { tokens: Math.floor(used / 0.8) - 1 }, summary)?.earlier, summary);
});

t.test('no summary is due with another policy or with too small a budget', async (t) => {
  for (const policy of ['truncate', 'error'] as const)
    t.equal(dueSummary({ messages: turns(9) }, NEW, policy, { ...ROOM, tokens: 1000 }), undefined);
  t.match(due(turns(9), { tokens: 400 }), { tokens: 100 });
  for (const tokens of [399, 0, -10]) t.equal(due(turns(9), { tokens }), undefined);
});

t.test('a summary is not used if results of summarized calls follow', async (t) => {
  const open = [...turns(1), user('x'), asks('1')];
  const view = (messages: Message[], covered: number, added = NEW) =>
    historyView({ messages, summary: { messages: covered, text: 'old' } }, added, 'summarize', ROOM);
  t.strictSame(view(open, 4, [result('1')]), [...open, result('1')]);
  t.strictSame(view([...open, result('1'), assistant('y')], 4), [...open, result('1'), assistant('y'), ...NEW]);
  t.strictSame(view([...open, result('1'), user('images')], 5), [...open, result('1'), user('images'), ...NEW]);
  t.strictSame(view(turns(1), 3), [...turns(1), ...NEW], 'a summary of more messages than the session has is ignored');
  t.match(view(turns(1), 2), [{ role: 'user', content: /^<summary>.*old.*<\/summary>\n\nnew$/s }]);
});

t.test('a summary becomes part of the next user message, text or parts', async (t) => {
  const summary = { messages: 2, text: 'old' };
  const image = { type: 'image_url', image_url: { url: 'data:,' } } as const;
  const given = historyView({ messages: turns(1), summary }, [{ role: 'user', content: [image] }], 'summarize', ROOM);
  t.match(given, [{ role: 'user', content: [{ type: 'text', text: /^<summary>.*old/s }, image] }]);
  t.equal(given.length, 1);
  const tight = historyView({ messages: turns(1), summary }, NEW, 'summarize', { ...ROOM, tokens: 10 });
  t.strictSame(tight, NEW, 'it is left out where it does not fit');
  const beforeAnAnswer = { messages: [assistant('Welcome'), ...turns(1)], summary: { messages: 0, text: 'odd' } };
  t.equal(historyView(beforeAnAnswer, NEW, 'summarize', ROOM).length, 4);
});

/**
 * Whether every provider takes it: it begins with a user, and each call has its result, each result
 * its call.
 */
function isValid(messages: readonly Message[]): boolean {
  let open = new Set<string>();
  for (const message of messages) {
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id)) return false;
      continue;
    }
    if (open.size > 0) return false;
    if (message.role === 'assistant') open = new Set((message.tool_calls ?? []).map(({ id }) => id));
  }
  return open.size === 0 && messages[0]?.role === 'user';
}

t.test('R-084 for any budget a view is valid, fits, and ends with the new messages', async (t) => {
  const text = fc.string({ maxLength: 300 });
  const turn: fc.Arbitrary<Message[]> = fc.oneof(
    fc.tuple(text, text).map(([said, answer]) => [user(said), assistant(answer)]),
    fc.tuple(text, text).map(([said, answer]) => [user(said), asks('1'), result('1'), asks('2'), result('2'), assistant(answer)]),
    text.map((said) => [user(said), user('and'), asks('1'), result('1'), user('images'), assistant('')]),
  );
  const inputs = fc.record({
    turns: fc.array(turn, { maxLength: 12 }),
    covered: fc.option(fc.nat({ max: 12 })),
    summary: text,
    answers: fc.boolean(),
    tokens: fc.integer({ min: -50, max: 1500 }),
    messages: fc.oneof(fc.nat({ max: 20 }), fc.constant(Number.POSITIVE_INFINITY)),
    reply: text,
  });
  let made = 0;
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(inputs, ({ turns, covered, summary, answers, tokens, messages, reply }) => {
        const tail = answers ? [user('call'), asks('open')] : [];
        const added = answers ? [result('open'), user('so?')] : NEW;
        const room = { tokens, messages };
        const history = [...turns.flat(), ...tail];
        const stored = {
          messages: history,
          summary: covered === null ? undefined : { messages: turns.slice(0, covered).flat().length, text: summary },
        };
        const fits = (view: readonly Message[]) => {
          const before = size(view) - size(added) - size(tail);
          const count = view.length - added.length - tail.length;
          return (answers && count <= 0) || (before <= Math.max(0, tokens) && count <= messages);
        };
        const check = (view: readonly Message[]) =>
          isValid(view) && fits(view) && JSON.stringify(view.slice(1)).endsWith(JSON.stringify(added.slice(1)).slice(1));
        if (!check(historyView(stored, added, 'summarize', room))) return false;

        const plan = dueSummary(stored, added, 'summarize', room);
        if (!plan) return true;
        const longest = reply.repeat(9).slice(0, plan.tokens);
        const after = { messages: history, summary: { messages: plan.messages, text: longest } };
        if (tokensOfSummary(longest) > plan.tokens) return true;
        made++;
        const view = historyView(after, added, 'summarize', room);
        return plan.messages > (plan.earlier?.messages ?? 0) && check(view) && JSON.stringify(view).includes('<summary>');
      }),
      { numRuns: 2000 },
    ),
  );
  t.ok(made > 100, `${made} summaries were made`);
});
