import t from 'tap';
import { answerOf, saying } from '../support/test-server.js';
import { CALLERS, codeIn, ran, script, startApprovals } from './support.js';

const { anna, ben } = CALLERS;
const server = await startApprovals(t);

const say = (text: string, session: string, headers: Readonly<Record<string, string>> = anna) =>
  server.chat(saying(text, { model: 'ops', session_id: session }), headers);

t.test('AP-3 the answer asks for a decision, and the next message decides', async (t) => {
  script(server, ['make clean'], 'It is clean.');
  const reply = await say('Clean up', 'one');
  t.match(reply.body, { choices: [{ finish_reason: 'stop', message: { tool_calls: undefined } }] });
  const text = String(answerOf(reply));
  t.match(text, /^The tool `shell\/run` needs approval, with these arguments:\n`\{"command":"make clean"\}`\n\nReply `approve /);
  t.strictSame(ran(server), []);
  t.equal(answerOf(await say(`approve ${codeIn(text)}`, 'one')), 'It is clean.');
  t.strictSame(ran(server), ['make clean']);
  t.match(server.asked.messages, [{ role: 'user' }, { role: 'assistant' }, { role: 'tool', content: 'output of make clean' }]);
});

t.test('AP-3 a stream asks, too', async (t) => {
  script(server, ['make test'], 'All passed.');
  const asked = await server.stream(saying('Test it', { model: 'ops', session_id: 'two' }), anna);
  t.match(asked.text, /needs approval/);
  const answered = await server.stream(
    saying(`deny ${codeIn(asked.text)} because later`, { model: 'ops', session_id: 'two' }),
    anna,
  );
  t.equal(answered.text, 'All passed.');
  t.match(server.asked.messages.at(-1), { role: 'tool', content: 'A person denied the call. It did not run. The reason: later' });
});

t.test('AP-3 a client that resends the whole conversation decides with its last message', async (t) => {
  script(server, ['make resend']);
  const text = String(answerOf(await say('Go', 'resent')));
  const messages = [
    { role: 'user', content: 'Go' },
    { role: 'assistant', content: text },
    { role: 'user', content: `approve ${codeIn(text)}` },
  ];
  t.equal(answerOf(await server.chat({ model: 'ops', session_id: 'resent', messages }, anna)), 'Done.');
  t.ok(ran(server).includes('make resend'));
});

t.test('AP-3 a repetition with an Idempotency-Key gets the same code', async (t) => {
  script(server, ['make once']);
  const keyed = { ...anna, 'idempotency-key': 'k1' };
  const text = String(answerOf(await say('Once', 'keyed', keyed)));
  t.equal(answerOf(await say('Once', 'keyed', keyed)), text);
  const decision = { ...anna, 'idempotency-key': 'k2' };
  t.equal(answerOf(await say(`approve ${codeIn(text)}`, 'keyed', decision)), 'Done.');
  t.equal(answerOf(await say(`approve ${codeIn(text)}`, 'keyed', decision)), 'Done.');
  t.equal(ran(server).filter((command) => command === 'make once').length, 1);
});

t.test('AP-6 another caller of the session gets 409', async (t) => {
  script(server, ['make mine']);
  const text = String(answerOf(await say('Go', 'mine')));
  const refused = await say(`approve ${codeIn(text)}`, 'mine', ben);
  t.equal(refused.status, 409);
  t.match(refused.body, { error: { type: 'invalid_request_error', code: 'approval_pending' } });
  t.equal(refused.headers.get('x-should-retry'), 'false');
  await say(`deny ${codeIn(text)}`, 'mine');
  t.notOk(ran(server).includes('make mine'));
});

t.test('AP-7 a stateless call is denied with a sentence', async (t) => {
  script(server, ['make stateless']);
  await server.chat(saying('Go', { model: 'ops' }), anna);
  t.match(server.asked.messages.at(-1), { content: /can only wait for it in a session/ });
  t.notOk(ran(server).includes('make stateless'));
});

t.test('AP-1 a tool that reads runs at once', async (t) => {
  script(server, ['here'], 'Looked.', 'look');
  t.equal(answerOf(await say('Look', 'looks')), 'Looked.');
  t.ok(ran(server).includes('here'));
});
