import t from 'tap';
import { LiveSocket } from '../support/live-socket.js';
import type { Reply } from '../support/test-server.js';
import { CALLERS, codeIn, ran, script, startApprovals } from './support.js';

const { anna, ben } = CALLERS;
const server = await startApprovals(t, {
  transports: '  responses: {}\n  websocket: {}\n  conversations: {}\n  approvals: {}\n',
});

interface Item {
  readonly id: string;
  readonly type: string;
  readonly [field: string]: unknown;
}
const outputOf = ({ status, body, text }: Reply): readonly Item[] => {
  if (status !== 200) throw new Error(`${status}: ${text}`);
  return (body as { readonly output: readonly Item[] }).output;
};
const idOf = ({ body }: Reply) => (body as { readonly id: string }).id;
const respond = (body: object, headers: Readonly<Record<string, string>> = anna) =>
  server.request('POST', '/v1/responses', headers, { model: 'ops', ...body });
const decision = (id: string, approve: boolean, more: object = {}) => [
  { type: 'mcp_approval_response', approval_request_id: id, approve, ...more },
];

t.test('AP-2 a call that waits is an item, and an item of the next request decides', async (t) => {
  script(server, ['make'], 'Made it.');
  const first = await respond({ input: 'Make it' });
  t.match(first.body, { status: 'completed' });
  const [request, ...others] = outputOf(first);
  t.match(request, {
    id: /^mcpr_/,
    type: 'mcp_approval_request',
    server_label: 'shell',
    name: 'run',
    arguments: '{"command":"make"}',
  });
  t.strictSame(others, [], 'the text with the code is for other surfaces');
  const next = await respond({ input: decision(request?.id ?? '', true), previous_response_id: idOf(first) });
  t.match(outputOf(next), [
    { type: 'mcp_call', approval_request_id: request?.id, status: 'completed', output: 'output of make' },
    { type: 'message', content: [{ text: 'Made it.' }] },
  ]);
  t.strictSame(ran(server), ['make']);
  const again = await respond({ input: decision(request?.id ?? '', true), previous_response_id: idOf(next) });
  t.match([again.status, again.body], [409, { error: { code: 'approval_decided' } }]);
});

t.test('AP-2 a denial has a reason, and streams have the same items', async (t) => {
  script(server, ['make install'], 'I did not.');
  const conversation = 'streamed';
  const { text } = await server.request('POST', '/v1/responses', anna, {
    model: 'ops',
    input: 'Install it',
    conversation,
    stream: true,
  });
  t.match(text, /"type":"response\.output_item\.added","sequence_number":\d+,"output_index":0,"item":\{"id":"mcpr_/);
  const [, id = ''] = /"id":"(mcpr_\w+)"/.exec(text) ?? [];
  const denied = await respond({ input: decision(id, false, { reason: 'not today' }), conversation });
  t.match(outputOf(denied), [{ type: 'message', content: [{ text: 'I did not.' }] }]);
  t.match(server.asked.messages.at(-1), { role: 'tool', content: /The reason: not today/ });
  t.notOk(ran(server).includes('make install'));
});

t.test('AP-2 the socket has the same items', async (t) => {
  script(server, ['make live'], 'Live.');
  const socket = await LiveSocket.open(t, server, { path: '/v1/live', headers: anna });
  const asked = await socket.ask({ model: 'ops', input: 'Go live' });
  const item = asked.output[0] as unknown as Item;
  t.match(item, { type: 'mcp_approval_request', name: 'run' });
  const done = await socket.ask({ model: 'ops', input: decision(item.id, true) });
  t.match(done.output, [{ type: 'mcp_call', approval_request_id: item.id }, { type: 'message' }]);
  t.ok(ran(server).includes('make live'));
});

t.test('AP-2 AP-6 a decision about a call of another caller is a 404, as for an unknown id', async (t) => {
  script(server, ['make secret']);
  const first = await respond({ input: 'Go', conversation: 'annas' });
  const id = outputOf(first)[0]?.id ?? '';
  for (const [caller, body] of [
    [ben, { input: decision(id, true), conversation: 'bens' }],
    [ben, { input: decision(id, true) }],
    [anna, { input: decision('mcpr_forged', true), conversation: 'annas' }],
    [anna, { input: decision(id, true), store: false }],
  ] as const) {
    const reply = await respond(body, caller);
    t.match([reply.status, reply.body], [404, { error: { code: 'approval_not_found' } }]);
  }
  for (const input of [[{ type: 'mcp_approval_response', approve: true }], decision(id, 'yes' as unknown as boolean)]) {
    t.equal((await respond({ input, conversation: 'annas' })).status, 400);
  }
  t.notOk(ran(server).includes('make secret'));
  await respond({ input: decision(id, true), conversation: 'annas' });
  t.equal(ran(server).filter((command) => command === 'make secret').length, 1);
});

t.test('AP-5 decisions at once from chat completions and Responses run the call once', async (t) => {
  script(server, ['make twice']);
  const asked = await server.chat({ model: 'ops', session_id: 'both', messages: [{ role: 'user', content: 'Go' }] }, anna);
  const code = codeIn(asked.text);
  const { data } = (await server.get('/v1/approvals', anna)).body as { readonly data: readonly Item[] };
  const id = data.find(({ session }) => session === 'both')?.id ?? '';
  await Promise.all([
    respond({ input: decision(id, true), conversation: 'both' }),
    server.chat({ model: 'ops', session_id: 'both', messages: [{ role: 'user', content: `approve all ${code}` }] }, anna),
    respond({ input: decision(id, true), conversation: 'both' }),
  ]);
  t.equal(ran(server).filter((command) => command === 'make twice').length, 1);
});

t.test('AP-4 one of two calls is decided wherever the conversation is continued', async (t) => {
  const socket = await LiveSocket.open(t, server, { path: '/v1/live', headers: anna });
  type Said = { readonly id: string; readonly output: readonly Item[] };
  type Ask = (input: unknown, previous: string | undefined) => Promise<Said>;
  const over =
    (more: object): Ask =>
    async (input, previous_response_id) => {
      const reply = await respond({ ...more, input, previous_response_id });
      return { id: idOf(reply), output: outputOf(reply) };
    };
  const named = over({ conversation: 'two' });
  const ways: Record<string, Ask> = {
    'the last response': over({}),
    'a named conversation': named,
    'a response of a named conversation': (input, previous) =>
      previous === undefined ? named(input, undefined) : over({})(input, previous),
    'the socket': async (input) => (await socket.ask({ model: 'ops', input })) as unknown as Said,
  };
  for (const [way, ask] of Object.entries(ways)) {
    const [a, b] = [`a ${way}`, `b ${way}`];
    script(server, [a, b], `Both of ${way}.`);
    const first = await ask('Go', undefined);
    const [one, two] = first.output.map(({ id }) => id);
    const isNamed = way === 'a named conversation';
    const second = await ask(decision(two ?? '', false), isNamed ? undefined : first.id);
    t.match(second.output, [{ type: 'mcp_approval_request', id: one }], way);
    t.notOk(ran(server).includes(a), way);
    const third = await ask(decision(one ?? '', true), isNamed ? undefined : second.id);
    t.match(third.output, [{ type: 'mcp_call', output: `output of ${a}` }, { content: [{ text: `Both of ${way}.` }] }], way);
    t.notOk(ran(server).includes(b), way);
    server.models.enqueue({ text: `On with ${way}.` });
    const on = await ask('And?', isNamed ? undefined : third.id);
    t.match(on.output.at(-1), { type: 'message' }, `${way}: the response is continued at its own turn`);
  }
});

t.test('AP-4 decisions over the response that asked, at once, are both taken', async (t) => {
  script(server, ['at once 1', 'at once 2']);
  const first = await respond({ input: 'Go' });
  const decisions = outputOf(first).map(({ id }) => respond({ input: decision(id, true), previous_response_id: idOf(first) }));
  t.strictSame(
    (await Promise.all(decisions)).map(({ status }) => status),
    [200, 200],
  );
  t.strictSame(
    ran(server)
      .filter((command) => String(command).startsWith('at once'))
      .sort(),
    ['at once 1', 'at once 2'],
  );
});

t.test('AP-7 without storage nothing can wait', async (t) => {
  script(server, ['make nothing']);
  const reply = await respond({ input: 'Go', store: false });
  t.match(outputOf(reply), [{ type: 'mcp_call', status: 'failed', approval_request_id: null }, { type: 'message' }]);
  t.notOk(ran(server).includes('make nothing'));
});
