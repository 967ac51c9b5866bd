import { type ApprovalDecision, OPEN } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { accountOf, answerWith, callTools, endOf, user } from '../../harness.js';
import { ANNA, asked, BEN, BOSS, results, start } from './support.js';

t.test('AP-6 another caller decides nothing, and is refused while calls wait', async (t) => {
  const app = await start();
  const [{ code = '', id = '' } = {}] = asked(await app.ask('List it'));
  t.match(endOf(await app.ask(`approve ${code}`, { principal: BEN })), { failure: { code: 'approval_pending' } });
  t.match(endOf(await app.ask('Hello', { principal: BEN })), { failure: { code: 'approval_pending' } });
  const items: ApprovalDecision[] = [{ id, approve: true }];
  t.match(endOf(await app.ask(undefined, { principal: BEN, approvals: items })), { failure: { code: 'approval_pending' } });
  await t.rejects(app.runtime.approvals.decide(id, { approve: true }, BEN, accountOf()), { code: 'approval_not_found' });
  t.strictSame(await app.runtime.approvals.list({ limit: 5, order: 'asc' }, BEN, accountOf()), []);
  t.strictSame(app.ran, []);
  await app.ask(`approve ${code}`);
  t.strictSame(app.ran, ['ls'], 'the caller that asked still decides');
});

t.test('AP-6 S-74 ten wrong codes of another caller deny what waits, several in one message too', async (t) => {
  const app = await start();
  const [{ code = '' } = {}] = asked(await app.ask('List it'));
  for (let n = 0; n < 2; n++) await app.ask('approve BBBBBB\n'.repeat(5), { principal: BEN });
  await app.ask(`approve ${code}`);
  t.strictSame(app.ran, []);
  t.strictSame(results(app, 1), ['The call was denied and did not run: too many wrong codes were tried.']);
});

t.test('AP-6 an approver lists and decides, and the loop goes on with the next request', async (t) => {
  const app = await start();
  const [{ id = '' } = {}] = asked(await app.ask('List it'));
  const shown = { id, session: 's', agent: 'assistant', tool: { entry: 'shell', name: 'run' }, arguments: '{"command":"ls"}' };
  for (const principal of [ANNA, BOSS])
    t.match(await app.runtime.approvals.list({ limit: 5, order: 'asc' }, principal, accountOf()), [shown]);
  await t.rejects(app.runtime.approvals.decide(id, { approve: true }, { ...BOSS, project: 'other' }, accountOf()), {
    code: 'approval_not_found',
  });
  await t.rejects(app.runtime.approvals.decide(id, { approve: true }, { ...BOSS, agents: ['x'] }, accountOf()), {
    code: 'approval_not_found',
  });
  t.match(await app.runtime.approvals.decide(id, { approve: true }, BOSS, accountOf()), shown);
  t.strictSame(app.ran, [], 'no model or tool runs without a caller');
  await t.rejects(app.runtime.approvals.decide(id, { approve: false }, BOSS, accountOf()), {
    code: 'approval_decided',
    message: /was approved/,
  });
  await app.ask('And then?');
  t.strictSame(app.ran, ['ls']);
  t.match(app.model.asked[1]?.messages.slice(-2), [{ role: 'tool', content: 'done' }, user('And then?')]);
  await t.rejects(app.runtime.approvals.decide(id, { approve: true }, BOSS, accountOf()), { code: 'approval_decided' });
});

t.test('AP-6 on an open server every caller may decide', async (t) => {
  const app = await start();
  const [{ code = '', id = '' } = {}] = asked(await app.ask('List it', { principal: OPEN }));
  t.match(await app.runtime.approvals.list({ limit: 1, order: 'asc' }, OPEN, accountOf()), [{ id }]);
  await app.ask(`approve ${code}`, { principal: OPEN });
  t.strictSame(app.ran, ['ls']);
  t.equal(app.calls[0]?.principal, OPEN);
});

t.test('AP-8 each request and each decision is an audit line, without the arguments', async (t) => {
  const clock = new ManualClock();
  const app = await start({ clock });
  const [{ code = '', id = '' } = {}] = asked(await app.ask('List it'));
  clock.advance(5000);
  await app.ask(`approve ${code}`);
  const common = { approval: id, project: 'default', agent: 'assistant', tool: 'shell/run', arguments_digest: /^[0-9a-f]{16}$/ };
  t.match(app.audit(), [
    { event: 'approval_requested', ...common, token_id: 'tok_anna' },
    { event: 'approval_decided', ...common, approve: true, token_id: 'tok_anna', waited_ms: 5000 },
  ]);
  t.notMatch(JSON.stringify(app.audit()), '"ls"');
});

t.test('AP-8 a waiting approval holds no place of a running turn', async (t) => {
  const app = await start({ steps: [callTools(['shell__run', { command: 'ls' }]), answerWith('a'), answerWith('b')] });
  await app.ask('List it');
  t.match(endOf(await app.ask('Hello', { session: { key: 'other' } })), { type: 'finished' });
});
