import { pluginContract } from '@plugboard/testing';
import t from 'tap';
import { CALLERS, ran, script, startApprovals } from '../../../test/approvals/support.js';
import { answerOf, type Reply, saying } from '../../../test/support/test-server.js';
import plugin from '../src/index.js';

const { anna, ben, boss, other, reader } = CALLERS;
const server = await startApprovals(t, { transports: '  approvals: {}\n' });

const say = (text: string, session: string) => server.chat(saying(text, { model: 'ops', session_id: session }), anna);
const list = async (caller: typeof anna, query = '') => {
  const { body } = await server.get(`/v1/approvals${query}`, caller);
  return body as { readonly data: readonly { readonly id: string; readonly session: string }[]; readonly has_more: boolean };
};
const decide = (id: string, body: unknown, caller = boss) => server.request('POST', `/v1/approvals/${id}`, caller, body);
const codeOf = ({ status, body }: Reply) => [status, (body as { error?: { code: string } }).error?.code];

t.test('AP-6 an approver lists what waits in its project and decides', async (t) => {
  const call = (command: string) => ({ toolCalls: [{ name: 'shell__run', arguments: { command } }] });
  server.models.enqueue(call('make one'), call('make two'), { text: 'One.' });
  await say('Go', 'one');
  await say('Go', 'two');
  const { data, has_more } = await list(boss);
  t.match(data, [
    { object: 'approval', session: 'two', agent: 'ops', tool: 'shell/run', arguments: '{"command":"make two"}' },
    { id: /^mcpr_/, session: 'one', conversation: /^conv_/, created_at: Number, expires_at: Number },
  ]);
  t.equal(has_more, false);
  const page = await list(boss, '?limit=1');
  t.match(page, { data: [{ session: 'two' }], has_more: true });
  t.match((await list(boss, `?limit=1&after=${page.data[0]?.id}`)).data, [{ session: 'one' }]);
  t.strictSame((await list(ben)).data, [], 'another caller sees nothing');
  t.strictSame((await list(other)).data, [], 'nor does another project');
  t.equal((await list(anna)).data.length, 2, 'who began the turns does');
  t.equal((await server.get('/v1/approvals', reader)).status, 403);
  t.strictSame(codeOf(await server.get('/v1/approvals?after=mcpr_forged', boss)), [404, 'approval_not_found']);

  const id = data.find(({ session }) => session === 'one')?.id ?? '';
  for (const caller of [ben, other, reader])
    t.strictSame(codeOf(await decide(id, { approve: true }, caller)), [404, 'approval_not_found']);
  t.strictSame(codeOf(await decide('mcpr_forged', { approve: true })), [404, 'approval_not_found']);
  t.equal((await decide(id, {})).status, 400);
  t.equal((await decide(id, { approve: 'yes' })).status, 400);
  t.match(await decide(id, { approve: true }), { status: 202, body: { id, approve: true } });
  t.strictSame(ran(server), []);
  t.strictSame(codeOf(await decide(id, { approve: false })), [409, 'approval_decided']);
  t.match(
    (await list(boss)).data.map(({ session }) => session),
    ['two'],
  );
  t.equal(answerOf(await say('Well?', 'one')), 'One.');
  t.strictSame(ran(server), ['make one']);
});

t.test('AP-4 a call that expired is a 410', async (t) => {
  const soon = await startApprovals(t, { transports: '  approvals: {}\n', agent: ', approvalExpires: 1ms' });
  script(soon, ['make late']);
  await soon.chat(saying('Go', { model: 'ops', session_id: 's' }), anna);
  const line = soon.started.logs.find(({ event }) => event === 'approval_requested');
  await new Promise((resolve) => setTimeout(resolve, 5));
  const reply = await soon.request('POST', `/v1/approvals/${line?.approval}`, boss, { approve: true });
  t.strictSame(codeOf(reply), [410, 'approval_expired']);
});

pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
