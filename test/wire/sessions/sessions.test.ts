import { eventually } from '@plugboard/testing';
import t from 'tap';
import { answerOf, errorOf, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';

/** Logs which session each turn belongs to. */
const WITNESS = `
  import { definePlugin, Interceptors } from '@plugboard/kernel';
  export default definePlugin({
    name: 'witness', apiVersion: 1, summary: 'Tells whose turn it is', configSchema: { type: 'object', properties: {} },
    register: (ctx) => ctx.contribute(Interceptors, (turn, next) => {
      ctx.log.info({ session: turn.session ?? null }, 'turn');
      return next(turn);
    }),
  });
`;

const server = await TestServer.start(
  t,
  `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  assistant: { model: fast }
  other: { model: fast }
plugins:
  witness: { use: ./witness.mjs }
`,
  { files: { 'witness.mjs': WITNESS } },
);

/**
 * Says something, which the model repeats, and gives what the model saw of what the user has said
 * so far.
 */
async function say(text: string, fields: object = {}, headers: Readonly<Record<string, string>> = {}): Promise<unknown[]> {
  const answer = answerOf(await server.chat(saying(text, fields), headers));
  if (answer !== text) throw new Error(`the answer to "${text}" is "${answer}"`);
  return heard();
}

function heard(): unknown[] {
  return server.asked.messages.filter(({ role }) => role === 'user').map(({ content }) => content);
}

/** The name of the session that the last turn belonged to. */
function session(): unknown {
  return server.started.logs.findLast(({ msg }) => msg === 'turn')?.session;
}

t.test('C-120 C-125 requests without a key, or with a blank one, do not share history', async (t) => {
  await say('First');
  t.strictSame(await say('Second'), ['Second']);
  for (const fields of [{ user: '' }, { session_id: '' }, { user: '', session_id: '' }, { user: ' \t', session_id: '\n' }]) {
    await say('First', fields);
    t.strictSame(await say('Second', fields), ['Second'], JSON.stringify(fields));
    t.equal(session(), null);
  }
  await say('First', {}, { 'x-session-id': '' });
  t.strictSame(await say('Second', {}, { 'x-session-id': ' ' }), ['Second']);
});

t.test('C-121 C-127 the user alone is a key', async (t) => {
  await say('First', { user: 'ann' });
  t.strictSame(await say('Second', { user: 'ann' }), ['First', 'Second']);
  t.strictSame(server.asked.messages, [
    { role: 'user', content: 'First' },
    { role: 'assistant', content: 'First' },
    { role: 'user', content: 'Second' },
  ]);
  t.equal(session(), 'api:ann');
  t.strictSame(
    await say('Third', { user: 'ann', session_id: '' }),
    ['First', 'Second', 'Third'],
    'C-125 a blank field is absent',
  );
  t.strictSame(await say('Hi', { user: 'Ann' }), ['Hi'], 'unchanged');
});

t.test('C-122 C-127 the session id alone is a key', async (t) => {
  await say('First', { session_id: 'talk-1' });
  t.strictSame(await say('Second', { session_id: 'talk-1' }), ['First', 'Second']);
  t.equal(session(), 'api:talk-1');
  t.strictSame(await say('Third', { session_id: 'talk-1', user: '  ' }), ['First', 'Second', 'Third']);
});

t.test('C-123 C-127 session id and user together are a key: two users of one session id have two sessions', async (t) => {
  for (const user of ['bob', 'carol']) {
    await say(`I am ${user}`, { user, session_id: 'shared' });
    t.equal(session(), `api:${user}:shared`);
  }
  t.strictSame(await say('Who am I?', { user: 'bob', session_id: 'shared' }), ['I am bob', 'Who am I?']);
  t.strictSame(await say('Who am I?', { user: 'carol', session_id: 'shared' }), ['I am carol', 'Who am I?']);
  t.strictSame(await say('Hi', { session_id: 'shared' }), ['Hi']);
  t.strictSame(await say('Hi', { user: 'bob' }), ['Hi']);
});

t.test('C-124 an equal session id and user are one key', async (t) => {
  await say('First', { user: 'dave', session_id: 'dave' });
  t.equal(session(), 'api:dave');
  t.strictSame(await say('Second', { user: 'dave' }), ['First', 'Second']);
  t.strictSame(await say('Third', { session_id: 'dave' }), ['First', 'Second', 'Third']);
});

t.test('C-126 the header sets the session id unless the field does', async (t) => {
  await say('First', {}, { 'X-Session-Id': 'by-header' });
  t.equal(session(), 'api:by-header');
  t.strictSame(await say('Second', { session_id: 'by-header' }), ['First', 'Second']);
  t.strictSame(await say('Third', {}, { 'x-sEsSiOn-iD': 'by-header' }), ['First', 'Second', 'Third']);
  await say('Hi', { session_id: 'by-body' }, { 'X-Session-Id': 'by-header' });
  t.equal(session(), 'api:by-body');
  await say('Hi', { session_id: ' ' }, { 'X-Session-Id': 'by-header' });
  t.equal(session(), 'api:by-header');
  await say('Hi', { user: 'ann' }, { 'X-Session-Id': 'by-header' });
  t.equal(session(), 'api:ann:by-header');
  await say('Hi', {}, { 'X-Session-Id': Buffer.from('Größe 😀').toString('latin1') });
  t.equal(session(), 'api:Größe 😀', 'its bytes are UTF-8');
});

t.test('C-127 C-128 one key of two agents names two sessions', async (t) => {
  const key = { session_id: 'for-two' };
  await say('To the assistant', key);
  t.strictSame(await say('To the other', { model: 'other', ...key }), ['To the other']);
  t.strictSame(await say('To the model', { model: 'fast', ...key }), ['To the model']);
  t.strictSame(await say('Again', key), ['To the assistant', 'Again']);
});

t.test('C-129 a caller that resends the whole conversation does not duplicate it', async (t) => {
  const key = { session_id: 'resent' };
  const conversation = [{ role: 'user', content: 'One' }];
  await server.chat({ model: 'assistant', messages: conversation, ...key });
  conversation.push({ role: 'assistant', content: 'One' }, { role: 'user', content: 'Two' });
  await server.chat({ model: 'assistant', messages: [{ role: 'system', content: 'Be brief.' }, ...conversation], ...key });
  t.strictSame(server.asked.messages, [{ role: 'system', content: 'Be brief.' }, ...conversation]);
  t.strictSame(await say('Three', key), ['One', 'Two', 'Three']);
  t.equal(server.asked.messages[0]?.role, 'user', 'a system message is not kept');

  const seed = [
    { role: 'user', content: 'Earlier' },
    { role: 'assistant', content: 'Much earlier' },
    { role: 'user', content: 'Now' },
  ];
  await server.chat({ model: 'assistant', messages: seed, session_id: 'seeded' });
  t.strictSame(await say('Later', { session_id: 'seeded' }), ['Earlier', 'Now', 'Later'], 'a new session is seeded');
});

t.test('C-130 turns of one session run one after the other, those of two sessions at once', async (t) => {
  const gate = Promise.withResolvers<void>();
  const number = server.models.requests.length + 1;
  server.models.enqueue({ before: gate.promise, text: 'One.' });
  const first = server.chat(saying('One', { session_id: 'busy' }));
  await server.models.received(number);
  const second = server.stream(saying('Two', { session_id: 'busy' }));
  t.equal(answerOf(await server.chat(saying('Meanwhile', { session_id: 'idle' }))), 'Meanwhile');
  t.equal(server.models.requests.length, number + 1, 'the second turn has not begun');
  gate.resolve();
  t.equal(answerOf(await first), 'One.');
  t.equal((await second).text, 'Two');
  t.strictSame(heard(), ['One', 'Two']);
});

t.test('C-131 C-132 a failed or abandoned turn leaves no trace, and its answer forbids a retry', async (t) => {
  const key = { session_id: 'unlucky' };
  const failing = { status: 500, headers: { 'x-should-retry': 'false' } };
  await say('First', key);
  server.models.enqueue(failing, failing, { text: ['Half'], cut: { afterEvents: 2 } });
  const failed = await server.chat(saying('Second', key));
  t.equal(failed.status, 502);
  t.equal(failed.headers.get('x-should-retry'), 'false');
  t.equal(errorOf(failed).type, 'svc_error');
  const stateless = await server.chat(saying('Second'));
  t.equal(stateless.status, 502);
  t.notOk(stateless.headers.has('x-should-retry'), 'where nothing can happen twice, it may be asked again');
  t.equal((await server.stream(saying('Second', key))).errors.length, 1);

  const gate = Promise.withResolvers<void>();
  t.teardown(() => gate.resolve());
  server.models.enqueue({ text: ['Half', gate.promise] });
  const left = await server.open(saying('Second', key));
  await left.until('Half');
  left.leave();
  await eventually(() => server.accessLog.at(-1)?.outcome === 'cancelled_by_client');
  t.strictSame(await say('Second', key), ['First', 'Second']);
  t.equal(server.asked.messages.length, 3);
});
