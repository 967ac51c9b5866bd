import type { Message, Principal } from '@plugboard/kernel';
import { OPEN, type TurnRequest, toolImagesMessage } from '@plugboard/kernel/contracts';
import t from 'tap';
import { accountOf, answerWith, collect, endOf, request, ScriptedModel, startRuntime, user } from '../../harness.js';

/** The code of a turn that failed, with the field that is wrong; else how it ended. */
async function endWith(app: Awaited<ReturnType<typeof startRuntime>>, more: Partial<TurnRequest> | object) {
  const end = endOf(await collect(app.runtime.run(request(app.target(), more as Partial<TurnRequest>))));
  if (end.type === 'finished') return end.reason;
  const { code, param } = end.failure;
  return param === undefined ? code : `${code} ${param}`;
}

async function open(settings: object = {}, input?: readonly ('text' | 'image')[]) {
  const model = new ScriptedModel(() => answerWith('ok'), input);
  const agents = { assistant: { model: 'fast' }, billing: { model: 'fast', project: 'acme' } };
  return { model, app: await startRuntime({ models: { fast: model }, agents, settings }) };
}

const acme: Principal = { project: 'acme', token: 'ci', tokenId: 'tok_1', scopes: ['chat'] };

t.test('a turn needs a caller with the scope chat that may use its target', async (t) => {
  const { app, model } = await open({ projects: { acme: {} } });
  t.equal(await endWith(app, { principal: { ...OPEN, scopes: ['models:read'] } }), 'forbidden');
  t.equal(await endWith(app, { principal: acme }), 'forbidden', 'an agent of another project');
  t.equal(
    await endWith(app, { principal: { ...OPEN, agents: ['billing'] } }),
    'forbidden',
    'an agent that its token does not name',
  );
  t.equal(await endWith(app, { principal: acme, target: app.target('fast') }), 'forbidden', 'a raw model');
  t.equal(await endWith(app, { principal: acme, target: app.target('billing') }), 'stop');
  t.equal(model.asked.length, 1, 'what is refused reaches no model');
});

t.test('a session key is 1 to 512 bytes, or two such keys joined, without control characters', async (t) => {
  const { app } = await open();
  const end = (key: unknown) => endWith(app, { session: { key } });
  const long = 'x'.repeat(512);
  for (const key of ['', '  ', 'x'.repeat(600), 'a\u0000b', 'a\nb', 'a\ud800', `${long}x:y`, `a:${long}x`, 7])
    t.equal(await end(key), 'invalid_request session.key', JSON.stringify(key).slice(0, 20));
  for (const key of ['a', long, `${long}:${long}`, `a:b:${long}`, 'telegram:42', '../../etc/passwd'])
    t.equal(await end(key), 'stop', key.slice(0, 20));
});

t.test('the messages of a turn have the shape that every model server accepts', async (t) => {
  const { app, model } = await open();
  const called: Message = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
  };
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
  for (const messages of [
    'Hello',
    [null],
    [{ role: 'robot', content: 'x' }],
    [{ role: '__proto__', content: 'x' }],
    [{ role: 'user' }],
    [{ role: 'user', content: null }],
    [{ role: 'user', content: 7 }],
    [{ role: 'user', content: [{ type: 'text' }] }],
    [{ role: 'user', content: [{ type: 'sound', sound: 'x' }] }],
    [{ role: 'user', content: [{ type: 'image_url', image_url: 'https://x.example' }] }],
    [{ role: 'system', content: [{ type: 'image_url', image_url: { url: 'https://x.example' } }] }],
    [{ role: 'assistant', content: null }],
    [{ role: 'assistant', content: null, tool_calls: [] }],
    [{ role: 'assistant', content: null, tool_calls: [{ ...call, id: undefined }] }],
    [{ role: 'assistant', content: null, tool_calls: [{ ...call, function: {} }] }],
    [{ role: 'assistant', content: null, tool_calls: [call, call] }],
    [{ role: 'tool', content: 'x' }],
    [{ role: 'function', content: 'x' }],
  ]) {
    t.match(await endWith(app, { messages }), /^invalid_request messages/, JSON.stringify(messages));
    t.match(await endWith(app, { messages, session: { key: 's' } }), /^invalid_request messages/, JSON.stringify(messages));
  }
  const orders: (readonly Message[])[] = [
    [user('Go'), called],
    [user('Go'), called, user('Well?')],
    [{ role: 'tool', tool_call_id: 'c', content: 'x' }],
    [user('Go'), called, { role: 'tool', tool_call_id: 'd', content: 'x' }],
  ];
  for (const messages of orders) {
    t.match(await endWith(app, { messages }), /^invalid_request messages/, JSON.stringify(messages));
    t.match(await endWith(app, { messages, session: { key: 'new' } }), /^invalid_request messages/, JSON.stringify(messages));
  }
  t.equal(model.asked.length, 0);
  t.equal(await endWith(app, { messages: [user('Go'), called, { role: 'tool', tool_call_id: 'c', content: 'x' }] }), 'stop');
});

t.test('a turn has a message, and new images only for a model that takes them', async (t) => {
  const { app, model } = await open({}, ['text']);
  for (const more of [{}, { history: [] }, { history: [user('Hi')] }, { session: { key: 'new' } }, { approvals: [] }])
    t.match(await endWith(app, { messages: [], ...more }), /^invalid_request messages/, JSON.stringify(more));
  const image = { type: 'image_url', image_url: { url: 'https://x.example/a.png' } };
  const shown = { role: 'user', content: [{ type: 'text', text: 'Look' }, image] } as Message;
  const answered = [shown, { role: 'assistant', content: 'Nice' }, user('And?')];
  const param = (index: number) => `invalid_request messages[${index}].content[1]`;
  t.equal(await endWith(app, { messages: [shown] }), param(0));
  t.equal(await endWith(app, { messages: [user('Hi'), shown], session: { key: 's' } }), param(1));
  t.equal(await endWith(app, { messages: answered }), param(0), 'without a session all of them are new');
  t.equal(model.asked.length, 0);
  t.equal(await endWith(app, { messages: [user('Hi')], session: { key: 's' } }), 'stop');
  t.equal(await endWith(app, { messages: answered, session: { key: 's' } }), 'stop', 'its session has the image already');
  const called = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } };
  const result = [
    { role: 'assistant', content: null, tool_calls: [called] },
    { role: 'tool', tool_call_id: 'c', content: 'ok' },
    toolImagesMessage(['https://x.example/a.png']),
  ];
  t.equal(await endWith(app, { messages: [user('Go'), ...result] }), 'stop', 'a result of a tool has a note instead');
  t.equal(await endWith((await open()).app, { messages: [shown] }), 'stop');
});

t.test('run counts a turn, unless its transport has counted it', async (t) => {
  const { app } = await open({ projects: { acme: { requestsPerMinute: 2 } } });
  const ask = (more: Partial<TurnRequest> = {}) => endWith(app, { principal: acme, target: app.target('billing'), ...more });
  for (let turn = 0; turn < 3; turn++) t.equal(await ask({ account: accountOf() }), 'stop');
  t.equal(await ask(), 'stop');
  t.equal(app.runtime.countRequest(acme).refused, undefined);
  t.equal(await ask(), 'rate_limited');
  t.equal(app.runtime.countRequest(acme).refused?.code, 'rate_limited');
  t.equal(await ask({ account: accountOf() }), 'stop');
  const own = { ...acme, project: 'default', limits: { requestsPerMinute: 1 } };
  t.equal(await endWith(app, { principal: own }), 'stop');
  t.equal(await endWith(app, { principal: own, session: { key: 's', fingerprint: 'f' } }), 'rate_limited');
});

t.test('a turn that is refused gives its idempotency key back', async (t) => {
  const { app } = await open();
  const key = { project: 'default', route: '/', key: 'k' };
  const claimed = await app.runtime.claim(key, 'a', accountOf());
  if (claimed.kind !== 'new') throw new Error(claimed.kind);
  const recorder = { add: () => {}, text: () => '' };
  t.equal(
    await endWith(app, { messages: [{ role: 'user' }], idempotency: { claim: claimed.claim, recorder } }),
    'invalid_request messages[0]',
  );
  t.match(await app.runtime.claim(key, 'b', accountOf()), { kind: 'new' });
});
