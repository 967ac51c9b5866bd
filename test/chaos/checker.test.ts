import type { Message } from '@plugboard/kernel';
import t from 'tap';
import { type Attempt, check, type Verdict } from './checker.js';
import { historyFaults } from './history-faults.js';
import { answerTo, INTERRUPTED_NOTE } from './known-turns.js';

const said = (number: number, kind = 'plain') => `ann says ${number} ${kind}`;
const user = (content: string): Message => ({ role: 'user', content });
const assistant = (content: string): Message => ({ role: 'assistant', content });
const calling = (id: string): Message => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'clock', arguments: '{}' } }],
});
const result = (tool_call_id: string): Message => ({ role: 'tool', tool_call_id, content: 'noon' });
const whole = (number: number): readonly Message[] => [user(said(number)), assistant(answerTo(said(number)))];
const withTool = (number: number, id: string): readonly Message[] => [
  user(said(number, 'tool')),
  calling(id),
  result(id),
  assistant(answerTo(said(number, 'tool'))),
];
const saw = (number: number, saw: Attempt['saw'] = 'end', kind = 'plain'): Attempt => ({
  session: 's',
  who: 'ann',
  text: said(number, kind),
  saw,
});

/** The faults of one kept session alone. */
function faults(journal: Attempt[], version: number, messages: readonly Message[], keepsInput = false) {
  const verdict = check(journal, new Map([['s', { version, messages }]]), new Set(keepsInput ? ['s'] : []));
  const { lost, duplicated, half, disordered, unasked, invalid } = verdict;
  return { verdict, faults: { lost, duplicated, half, disordered, unasked, invalid } };
}

const NONE: Pick<Verdict, 'lost' | 'duplicated' | 'half' | 'disordered' | 'unasked' | 'invalid'> = {
  lost: [],
  duplicated: [],
  half: [],
  disordered: [],
  unasked: [],
  invalid: [],
};

t.test('a store that kept all acknowledged turns has no faults', async (t) => {
  const journal = [saw(1), saw(2, 'end', 'tool'), saw(3, 'nothing'), saw(4, 'nothing'), saw(5, 'refusal')];
  const found = faults(journal, 3, [...whole(1), ...withTool(2, 'a'), ...whole(3)]);
  t.strictSame(found.faults, NONE);
  t.match(found.verdict, { acknowledged: 2, keptUnacknowledged: 1, keptInput: 0 });
});

t.test('a lost turn is found', async (t) => {
  const lost = ['s: "ann says 2 plain"'];
  t.strictSame(faults([saw(1), saw(2)], 1, whole(1)).faults, { ...NONE, lost });
  t.strictSame(check([saw(2)], new Map()).lost, lost, 'with its whole session');
});

t.test('a duplicated turn is found', async (t) => {
  t.match(faults([saw(1)], 2, [...whole(1), ...whole(1)]).faults, { ...NONE, duplicated: ['s: "ann says 1 plain"'] });
});

t.test('turns in the wrong order are found', async (t) => {
  const { disordered } = faults([saw(1), saw(2)], 2, [...whole(2), ...whole(1)]).faults;
  t.strictSame(disordered, ['s: "ann says 1 plain" comes too late']);
});

t.test('either half of a turn is found, acknowledged or not', async (t) => {
  for (const kept of [
    [user(said(1, 'tool'))],
    [user(said(1, 'tool')), calling('a')],
    [user(said(1, 'tool')), calling('a'), result('a')],
    [user(said(1, 'tool')), assistant(answerTo(said(1, 'tool')))],
    [user(said(1, 'tool')), calling('a'), result('a'), assistant('Answer to')],
  ]) {
    for (const end of ['end', 'nothing'] as const) {
      t.equal(faults([saw(1, end, 'tool')], 1, kept).faults.half.length, 1, `${kept.length} messages`);
    }
  }
});

t.test('a stored turn that was never sent, or was refused, is found', async (t) => {
  t.equal(faults([], 1, whole(1)).faults.unasked.length, 1);
  t.equal(faults([saw(1, 'refusal')], 1, whole(1)).faults.unasked.length, 1);
});

t.test('the input of an interrupted turn is valid only if the agent keeps it', async (t) => {
  const kept = [user(said(1)), assistant(INTERRUPTED_NOTE)];
  t.match(faults([saw(1, 'nothing')], 1, kept, true), { faults: NONE, verdict: { keptInput: 1 } });
  t.equal(faults([saw(1, 'nothing')], 1, kept).faults.half.length, 1);
  t.equal(faults([saw(1)], 1, kept, true).faults.half.length, 1, 'an answer that was seen is more than that');
});

t.test('a version that differs from the number of turns is found', async (t) => {
  t.strictSame(faults([saw(1)], 2, whole(1)).faults.invalid, ['s: 1 turns at version 2']);
});

t.test('a history that providers refuse is found', async (t) => {
  t.strictSame(historyFaults([]), []);
  t.strictSame(historyFaults([...whole(1), ...withTool(2, 'a'), ...withTool(3, 'a')]), []);
  for (const [history, fault] of [
    [[user('a'), user('b'), assistant('c')], 'message 1 (user) follows upon user'],
    [[assistant('a')], 'message 0 (assistant) answers no user message'],
    [[user('a'), assistant('b'), assistant('c')], 'message 2 (assistant) answers no user message'],
    [[user('a'), calling('x'), assistant('b')], 'message 2 (assistant) follows upon calls without results: x'],
    [
      [user('a'), calling('x'), result('y'), result('x'), assistant('b')],
      'message 2 (tool) answers the call y, which is not open',
    ],
    [
      [user('a'), calling('x'), result('x'), result('x'), assistant('b')],
      'message 3 (tool) answers the call x, which is not open',
    ],
    [[user('a')], 'the last message is user, and no answer'],
    [[user('a'), calling('x'), result('x')], 'the last message is tool, and no answer'],
    [[{ role: 'system', content: 'x' } as const, user('a'), assistant('b')], 'message 0 (system) is kept, and should not be'],
  ] as const) {
    t.strictSame(historyFaults(history), [fault]);
  }
});
