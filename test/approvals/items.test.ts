/** A conversation with decisions, as it is read afterwards. */
import t from 'tap';
import { CALLERS, codeIn, script, startApprovals } from './support.js';

const { anna } = CALLERS;
const server = await startApprovals(t, { transports: '  responses: {}\n  conversations: {}\n' });

interface Item {
  readonly id: string;
  readonly type: string;
  readonly [field: string]: unknown;
}
const say = async (session_id: string, content: string): Promise<string> => {
  const { body } = await server.chat({ model: 'ops', session_id, messages: [{ role: 'user', content }] }, anna);
  return (body as { readonly choices: readonly { readonly message: { readonly content: string } }[] }).choices[0]?.message
    .content as string;
};
const idOf = async (key: string): Promise<string | undefined> => {
  const found = (await server.get('/v1/conversations', anna)).body as { readonly data: readonly { id: string; key: string }[] };
  return found.data.find((one) => one.key === key)?.id;
};
const listed = async <T = Item>(key: string, list: 'items' | 'turns'): Promise<readonly T[]> => {
  const page = await server.get(`/v1/conversations/${await idOf(key)}/${list}?order=asc`, anna);
  return (page.body as { readonly data: readonly T[] }).data;
};
const types = (items: readonly Item[]) => items.map(({ type }) => type);

t.test('AP-2 the request, the decision and the approved call are items of the conversation', async (t) => {
  script(server, ['make', 'make test'], 'Made it.');
  const asked = await say('one', 'Make it');
  const waiting = await listed('one', 'items');
  t.strictSame(types(waiting), ['message', 'mcp_approval_request', 'mcp_approval_request']);
  t.match(waiting[1], { id: /^mcpr_/, server_label: 'shell', name: 'run', arguments: '{"command":"make"}' });
  const [first, second] = waiting.slice(1).map(({ id }) => id);

  const codes = [...asked.matchAll(/approve ([A-Z2-9]{6})/g)].map(([, code]) => code);
  await say('one', `approve ${codes[0]}\ndeny ${codes[1]} because not now`);
  const items = await listed('one', 'items');
  t.strictSame(items.slice(0, 3), waiting, 'what was asked stays');
  t.match(items.slice(3), [
    { type: 'mcp_approval_response', approval_request_id: second, approve: false, reason: 'not now' },
    { type: 'mcp_approval_response', approval_request_id: first, approve: true, reason: null },
    {
      type: 'mcp_call',
      approval_request_id: first,
      status: 'completed',
      arguments: '{"command":"make"}',
      output: 'output of make',
    },
    { type: 'message', role: 'assistant', content: [{ text: 'Made it.' }] },
  ]);
  t.match(await listed('one', 'turns'), [
    {
      turn: 1,
      calls: [
        { status: 'waiting', item_id: first },
        { status: 'waiting', item_id: second },
      ],
    },
    {
      turn: 2,
      calls: [{ status: 'completed', step: 0, approval_request_id: first, item_id: items[5]?.id }],
      decisions: [
        { approve: true, by: 'person' },
        { approve: false, by: 'person', reason: 'not now' },
      ],
    },
  ]);
});

t.test('AP-4 a call that another message overtook is shown as denied, with the reason', async (t) => {
  script(server, ['make']);
  await say('two', 'Make it');
  await say('two', 'Something else');
  const [, request, ...later] = await listed('two', 'items');
  t.match(later, [
    { type: 'mcp_approval_response', approval_request_id: request?.id, approve: false, reason: /the conversation went on/ },
    { type: 'message', role: 'user' },
    { type: 'message', role: 'assistant' },
  ]);
});

t.test('a copy of a session shows its calls as denied', async (t) => {
  script(server, ['make']);
  t.ok(codeIn(await say('three', 'Make it')));
  const found = (await server.get('/v1/conversations', anna)).body as { readonly data: readonly { id: string; key: string }[] };
  const id = found.data.find((one) => one.key === 'three')?.id;
  await server.request('POST', `/v1/conversations/${id}/fork`, anna, { id: 'copy' });
  await say('copy', 'Go on');
  const [, request, denied] = await listed('copy', 'items');
  t.match(request, { type: 'mcp_approval_request' });
  t.match(denied, { type: 'mcp_approval_response', approval_request_id: request?.id, approve: false, reason: /copied/ });
});

t.test('S-71 a request for approval is found by its id, also in a fork, and in no other conversation', async (t) => {
  server.models.enqueue({ text: 'Hello.' });
  await say('three', 'Hi');
  script(server, ['make']);
  await say('three', 'Make it');
  await say('four', 'Hi');
  await server.request('POST', `/v1/conversations/${await idOf('three')}/fork`, anna, { id: 'copy' });
  const request = (await listed('three', 'items')).find(({ type }) => type === 'mcp_approval_request');
  for (const key of ['three', 'copy']) {
    const items = `/v1/conversations/${await idOf(key)}/items`;
    t.strictSame((await server.get(`${items}/${request?.id}`, anna)).body, request, key);
    const all = await listed(key, 'items');
    const after = (await server.get(`${items}?order=desc&after=${request?.id}`, anna)).body as { readonly data: readonly Item[] };
    t.strictSame(
      after.data,
      all
        .slice(
          0,
          all.findIndex(({ id }) => id === request?.id),
        )
        .toReversed(),
      key,
    );
  }
  t.equal((await server.get(`/v1/conversations/${await idOf('four')}/items/${request?.id}`, anna)).status, 404);
  t.equal((await server.get(`/v1/conversations/${await idOf('three')}/items/mcpr_none`, anna)).status, 404);
});
