import type { Tool } from '@plugboard/kernel';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { accountOf, answerWith, callTools, endOf, memoryStore, textOfEvents, tool, user } from '../../harness.js';
import { ANNA, asked, BOSS, idOf, results, start } from './support.js';

t.test('AP-3 AP-4 the line of the next message decides, and the loop goes on where it stopped', async (t) => {
  for (const line of ['approve CODE', 'Approve code.', '  `approve CODE`\n', 'APPROVE all CODE']) {
    const app = await start();
    const [{ code = '' } = {}] = asked(await app.ask('List it'));
    const events = await app.ask(line.replace('CODE', code).replace('code', code.toLowerCase()));
    t.strictSame(app.ran, ['ls'], line);
    t.match(
      events.map(({ type }) => type),
      ['started', 'tool-call', 'tool-result', 'step', 'text', 'usage', 'finished'],
    );
    t.equal(textOfEvents(events), 'I listed it.');
    t.match(app.model.asked[1]?.messages, [
      user('List it'),
      { role: 'assistant', tool_calls: [{ function: { name: 'shell__run' } }] },
      { role: 'tool', content: 'done' },
    ]);
    t.equal(app.model.asked[1]?.messages.length, 3, 'the decision is not sent to the model');
    const stored = await app.store.load({ project: 'default', agent: 'assistant', key: 's' });
    t.match(
      stored.messages.map(({ role }) => role),
      ['user', 'assistant', 'tool', 'assistant'],
    );
    t.notMatch(JSON.stringify(stored.messages), code, 'neither the code nor the decision is kept in the history');
  }
});

t.test('AP-4 a denied call gives the model a result that says so, with the reason', async (t) => {
  const app = await start();
  const [{ code = '' } = {}] = asked(await app.ask('List it'));
  t.equal(textOfEvents(await app.ask(`deny ${code} because it is Sunday`)), 'I listed it.');
  t.strictSame(app.ran, []);
  t.strictSame(results(app, 1), ['A person denied the call. It did not run. The reason: it is Sunday']);
});

t.test('AP-4 a message that decides nothing overtakes what waits', async (t) => {
  for (const text of [
    'What is the weather?',
    'approve all',
    'approve all AAAAAA',
    'deny all AAAAAA',
    'approve AAAAAA',
    'approve CODE\nand then go',
    'approve',
  ]) {
    const app = await start();
    const [{ code = '' } = {}] = asked(await app.ask('List it'));
    const message = text.replace('CODE', code);
    await app.ask(message);
    t.strictSame(app.ran, [], text);
    t.strictSame(results(app, 1), ['The call was denied and did not run: the conversation went on before anybody approved it.']);
    t.strictSame(app.model.asked[1]?.messages.at(-1), user(message), 'it is sent to the model');
    t.match(
      app.audit().map(({ event }) => event),
      ['approval_requested', 'approval_overtaken'],
    );
  }
});

t.test('AP-4 what nobody decides in time counts as denied', async (t) => {
  const clock = new ManualClock();
  const app = await start({ clock, agent: { approvalExpires: '1m' } });
  const [{ code = '', id = '' } = {}] = asked(await app.ask('List it'));
  clock.advance(60_000);
  t.strictSame(await app.runtime.approvals.list({ limit: 5, order: 'asc' }, ANNA, accountOf()), []);
  await t.rejects(app.runtime.approvals.decide(id, { approve: true }, ANNA, accountOf()), { code: 'approval_expired' });
  await app.ask(`approve ${code}`);
  t.strictSame(app.ran, []);
  t.strictSame(results(app, 1), ['The call was denied and did not run: nobody approved it in time.']);
  t.match(
    app.audit().map(({ event }) => event),
    ['approval_requested', 'approval_expired'],
  );
});

t.test('AP-4 of several calls each is decided, and they run when none is left', async (t) => {
  const steps = [
    callTools(['shell__run', { command: 'a' }], ['shell__run', { command: 'b' }], ['shell__run', { command: 'c' }]),
    answerWith('Done.'),
  ];
  const app = await start({ steps });
  const first = await app.ask('Run them');
  const [a, b, c] = asked(first);
  t.match(textOfEvents(first), /Reply `approve all [A-Z2-9]{6}` or `deny all` for all 3\.$/);
  const second = await app.ask(`approve ${b?.code}\ndeny ${a?.code}`);
  t.strictSame(app.ran, [], 'one is left');
  t.strictSame(
    asked(second).map(({ id }) => id),
    [c?.id],
  );
  t.match(textOfEvents(second), new RegExp(`approve ${c?.code}`));
  t.equal(app.model.asked.length, 1);
  await app.ask(`approve all ${c?.code}`);
  t.strictSame(app.ran.toSorted(), ['b', 'c']);
  t.strictSame((results(app, 1) as string[]).toSorted(), ['A person denied the call. It did not run.', 'done', 'done']);
});

t.test('AP-4 a turn that goes on has the parameters and the remaining limits of the one that asked', async (t) => {
  const steps = [callTools(['shell__run', { command: 'a' }]), callTools(['clock', {}]), answerWith('Done.')];
  const app = await start({ steps, agent: { maxToolCalls: 1 } });
  const [{ code = '' } = {}] = asked(await app.ask('Go', { params: { temperature: 0.3 } }));
  const events = await app.ask(`approve ${code}`, { params: { temperature: 0.9 } });
  t.strictSame(app.ran, ['a']);
  t.strictSame(app.model.asked[1]?.params, { temperature: 0.3 });
  t.match(endOf(events), { reason: 'length', limit: 'max_tool_calls' });
});

t.test('AP-5 the call that runs is the one that was shown, with its turn and number', async (t) => {
  const app = await start();
  const first = await app.ask('List it');
  const [{ code = '' } = {}] = asked(first);
  await app.ask(`approve ${code}`);
  const [begun] = first;
  t.match(app.calls, [{ turnId: begun?.type === 'started' ? begun.turnId : '', index: 0, principal: { tokenId: 'tok_anna' } }]);
});

t.test('AP-5 decisions at once run the call once, and the second one is an ordinary message', async (t) => {
  const app = await start();
  const [{ code = '', id = '' } = {}] = asked(await app.ask('List it'));
  const attempts = await Promise.allSettled([
    app.ask(`approve ${code}`),
    app.ask(undefined, { approvals: [{ id, approve: true }] }),
    app.runtime.approvals.decide(id, { approve: true }, BOSS, accountOf()),
    app.ask(`approve ${code}`),
    app.runtime.approvals.decide(id, { approve: false }, BOSS, accountOf()),
  ]);
  t.strictSame(app.ran, ['ls']);
  t.equal(app.audit().filter(({ event }) => event === 'approval_decided').length, 1);
  t.ok(attempts.filter(({ status }) => status === 'fulfilled').length >= 3);
});

t.test('AP-5 a turn that fails after the call has run does not run it again', async (t) => {
  const app = await start({ steps: [callTools(['shell__run', { command: 'ls' }]), [new Error('broken')], answerWith('Done.')] });
  const [{ code = '' } = {}] = asked(await app.ask('List it'));
  t.match(endOf(await app.ask(`approve ${code}`)), { type: 'failed' });
  t.equal(textOfEvents(await app.ask(`approve ${code}`)), 'Done.');
  t.strictSame(app.ran, ['ls']);
  t.strictSame(results(app, 2), ['done']);
});

t.test('AP-5 the effect decides about a call that began and was cut off', async (t) => {
  for (const effect of ['write', 'idempotent', 'read'] as const) {
    const hang = Promise.withResolvers<string>();
    let runs = 0;
    const app = await start({ effect, run: () => (++runs === 1 ? hang.promise : 'again') });
    const [{ code = '' } = {}] = asked(await app.ask('List it'));
    const gone = new AbortController();
    const cut = app.ask(`approve ${code}`, { signal: gone.signal });
    while (app.ran.length === 0) await new Promise(setImmediate);
    gone.abort();
    t.match(endOf(await cut), { type: 'failed' });
    hang.resolve('late');
    await app.ask(`approve ${code}`);
    t.equal(app.ran.length, effect === 'write' ? 1 : 2, effect);
    t.match(results(app, 1), [effect === 'write' ? /Whether it took effect is unknown/ : 'again'], 'the model is told');
    t.equal(new Set(app.calls.map(({ turnId, index }) => `${turnId}/${index}`)).size, 1, 'with the same key');
  }
});

t.test('AP-6 a call whose tool has changed since is denied', async (t) => {
  const tools: Tool[] = [tool('run', () => 'done', { command: { type: 'string' } }, ['command'])];
  const app = await start({ tools });
  const [{ code = '' } = {}] = asked(await app.ask('List it'));
  tools[0] = tool('run', () => 'done', { command: { type: 'string' }, force: { type: 'boolean' } }, ['command']);
  await app.ask(`approve ${code}`);
  t.match(results(app, 1), [/was approved but did not run: the tool shell\/run has changed since/]);
});

t.test('S-76 a cancel reads the last turn of a session alone, and denies what waits there', async (t) => {
  const clock = new ManualClock();
  const store = memoryStore(clock);
  const app = await start({ store, clock, steps: [answerWith('Hi.'), callTools(['shell__run', { command: 'ls' }])] });
  await app.ask('Hello');
  await app.ask('List it');
  const read: number[] = [];
  const turns = store.turns.bind(store);
  store.turns = async (id, page) => {
    const found = await turns(id, page);
    read.push(...found.map(({ turn }) => turn));
    return found;
  };
  store.load = () => Promise.reject(new Error('loads the session'));
  await app.runtime.conversations.cancel(idOf, ANNA, accountOf());
  t.strictSame(read, [2]);
  t.match(app.audit().at(-1), { event: 'approval_decided', approve: false, by: 'cancelled' });
});

t.test('a session whose calls wait: append is refused, cancel denies, a fork copies them as denied', async (t) => {
  const steps = () => [callTools(['shell__run', { command: 'ls' }]), answerWith('Done.'), answerWith('Done.')];
  const app = await start({ steps: steps() });
  const [{ code = '' } = {}] = asked(await app.ask('List it'));
  await t.rejects(app.runtime.conversations.append(idOf, [user('x')], ANNA, accountOf()), { code: 'approval_pending' });
  await app.runtime.conversations.fork(idOf, { key: 'copy' }, ANNA);
  await app.ask(`approve ${code}`, { session: { key: 'copy' } });
  t.strictSame(app.ran, []);
  t.match(results(app, 1), [/denied and did not run: the conversation was copied/]);
  await app.runtime.conversations.cancel(idOf, ANNA, accountOf());
  await app.ask(`approve ${code}`);
  t.strictSame(app.ran, []);
  t.match(results(app, 2), [/the conversation was cancelled before anybody approved it/]);
});

t.test('S-69 calls that wait in one turn keep its parameters once, and go on with them', async (t) => {
  const store = memoryStore();
  const run = (command: string): [string, unknown] => ['shell__run', { command }];
  const steps = [callTools(run('ls'), run('pwd'), run('id')), answerWith('Done.')];
  const app = await start({ store, steps });
  const asking = asked(await app.ask('Go', { params: { stop: 'x'.repeat(100_000) } }));
  const waiting = await store.approvals.waiting('default', { limit: 10, order: 'asc' });
  t.equal(waiting.length, 3);
  t.ok(waiting.every(({ listed }) => listed.length < 1_000));
  const whole = await store.approvals.get(
    'default',
    waiting.map(({ id }) => id),
  );
  const bytes = whole.reduce((sum, stored) => sum + stored.text.length, 0);
  t.ok(bytes > 100_000 && bytes < 110_000, `${bytes} bytes`);
  await app.ask(asking.map(({ code }) => `approve ${code}`).join('\n'));
  t.strictSame(app.ran, ['ls', 'pwd', 'id']);
  t.equal(String(app.model.asked[1]?.params.stop).length, 100_000);
});
