import type { Message } from '@plugboard/kernel';
import t from 'tap';
import { answerTo } from '../known-turns.js';
import { Journal, outOfOrder, type TimedAttempt, withAnswers } from './journal.js';

function stored(...attempts: readonly TimedAttempt[]) {
  const messages = attempts.flatMap(({ text }): Message[] => [
    { role: 'user', content: text },
    { role: 'assistant', content: `Answer to ${text}` },
  ]);
  return new Map([['s', { version: attempts.length, messages }]]);
}

t.test('a turn that had ended before another was sent has to be stored before it, whoever sent them', async (t) => {
  const journal = new Journal();
  const first = journal.send('s', 'ann', 'plain', false);
  journal.end(first);
  const second = journal.send('s', 'bob', 'plain', true);
  journal.end(second);
  t.strictSame(outOfOrder(journal.attempts, stored(first, second)), []);
  t.strictSame(outOfOrder(journal.attempts, stored(second, first)), [
    's: "ann says 1 plain" had ended before "bob says 2 plain" was sent, and is stored after it',
  ]);
});

t.test('turns that overlapped, and turns of unknown outcome, may be stored in any order', async (t) => {
  const journal = new Journal();
  const [ann, bob] = [journal.send('s', 'ann', 'plain', false), journal.send('s', 'bob', 'plain', false)];
  journal.end(bob);
  const unknown = journal.send('s', 'cleo', 'plain', false);
  const last = journal.send('s', 'bob', 'plain', false);
  journal.end(ann);
  journal.end(last);
  t.strictSame(outOfOrder(journal.attempts, stored(bob, ann, last, unknown)), []);
  t.strictSame(outOfOrder(journal.attempts, stored(ann, bob, unknown, last)), []);
  t.equal(outOfOrder(journal.attempts, stored(last, bob)).length, 1);
});

t.test('acknowledged turns that a model was not sent are found', async (t) => {
  const journal = new Journal();
  const [one, two] = [journal.send('s', 'ann', 'plain', false), journal.send('s', 'ann', 'plain', false)];
  journal.end(one);
  t.strictSame(journal.missingIn([two.text]), [one.text]);
  t.strictSame(journal.missingIn([one.text, two.text]), []);
  t.strictSame(journal.missingIn(['of no session']), []);
});

t.test('a turn whose writing tool had begun is whole without an answer, if its client saw none', async (t) => {
  const journal = new Journal();
  const [one, two] = [journal.send('s', 'ann', 'count', false), journal.send('s', 'ann', 'count', false)];
  const begun: readonly Message[] = [
    { role: 'user', content: one.text },
    { role: 'tool', tool_call_id: 'a', content: 'unknown' },
  ];
  const after: readonly Message[] = [{ role: 'user', content: two.text }];
  const messages = [...begun, ...after];
  const answer = { role: 'assistant', content: answerTo(one.text) };
  t.strictSame(withAnswers(new Map([['s', { version: 1, messages }]]), journal.attempts), {
    kept: new Map([['s', { version: 1, messages: [...begun, answer, ...after] }]]),
    begun: 1,
  });
  journal.end(one);
  t.equal(withAnswers(new Map([['s', { version: 1, messages }]]), journal.attempts).begun, 0);
});
