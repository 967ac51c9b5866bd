import type { AgentEvent, Principal, SessionStore, Tool, ToolInterceptor } from '@plugboard/kernel';
import { type ApprovalDecision, conversationId, OPEN, type TurnRequest } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import {
  answerWith,
  callTools,
  collect,
  endOf,
  type ModelStep,
  memoryStore,
  request,
  ScriptedModel,
  startRuntime,
  textOfEvents,
  tool,
  user,
} from '../harness.js';

const ANNA: Principal = { project: 'default', scopes: ['chat'], token: 'anna', tokenId: 'tok_anna' };
const BEN: Principal = { project: 'default', scopes: ['chat'], token: 'ben', tokenId: 'tok_ben' };
const BOSS: Principal = { project: 'default', scopes: ['approve'], token: 'boss', tokenId: 'tok_boss' };

interface Options {
  readonly agent?: object;
  readonly steps?: readonly (readonly ModelStep[])[];
  readonly effect?: Tool['effect'];
  readonly toolInterceptors?: Record<string, ToolInterceptor>;
  readonly store?: SessionStore;
  readonly clock?: ManualClock;
  readonly run?: Tool['run'];
  readonly tools?: readonly Tool[];
}

/** A runtime whose agent has a shell that needs approval and a clock that does not. */
async function start({
  agent = {},
  steps,
  effect = 'write',
  toolInterceptors,
  store,
  clock = new ManualClock(),
  run,
  tools,
}: Options = {}) {
  const ran: string[] = [];
  const calls: Parameters<Tool['run']>[1][] = [];
  const shell: Tool = {
    ...tool('run', run ?? (() => 'done'), { command: { type: 'string' } }, ['command']),
    effect,
  };
  const watched: Tool = {
    ...shell,
    run: (input, call) => {
      ran.push(String(input.command));
      calls.push(call);
      return shell.run(input, call);
    },
  };
  const model = new ScriptedModel(steps ?? [callTools(['shell__run', { command: 'ls' }]), answerWith('I listed it.')]);
  const app = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['shell', 'clock'], approve: ['shell/*'], ...agent } },
    models: { fast: model },
    tools: {
      shell: { tools: () => (tools ? [...tools] : undefined) ?? [watched, tool('look', () => 'nothing', {})] },
      clock: { single: true, tools: () => [NOON] },
    },
    ...(toolInterceptors && { toolInterceptors }),
    store: store ?? memoryStore(clock),
    clock,
  });
  const ask = (text: string | undefined, more: Partial<TurnRequest> = {}) => {
    const messages = text === undefined ? [] : [user(text)];
    return collect(app.runtime.run(request(app.target(), { principal: ANNA, session: { key: 's' }, messages, ...more })));
  };
  const audit = () => app.lines.filter(({ log }) => log === 'audit');
  return { ...app, model, ran, calls, ask, audit };
}

const NOON = tool('time', () => 'noon', {});

/** The codes and ids of the requests for approval among events. */
function asked(events: readonly AgentEvent[]) {
  return events.flatMap((event) => (event.type === 'approval' ? [event] : []));
}

/** What the model was told of its calls, in its nth request. */
function results({ model }: { readonly model: ScriptedModel }, nth: number): readonly unknown[] {
  return (model.asked[nth]?.messages ?? []).flatMap((message) => (message.role === 'tool' ? [message.content] : []));
}

const idOf = conversationId({ project: 'default', agent: 'assistant', key: 's' });

t.test('AP-1 AP-3 a call that needs approval does not run, others do, and the text asks for a decision', async (t) => {
  const app = await start({
    steps: [
      [{ type: 'text', text: 'Let me look.' }, ...callTools(['shell__run', { command: 'ls' }], ['clock', {}])],
      answerWith('Done.'),
    ],
  });
  const events = await app.ask('List it');
  t.strictSame(app.ran, []);
  t.match(
    events.map(({ type }) => type),
    ['started', 'step', 'text', 'usage', 'approval', 'tool-call', 'tool-result', 'text', 'finished'],
  );
  t.match(endOf(events), { type: 'finished', reason: 'stop' });
  const [{ id, code, call } = { id: '', code: '', call: undefined }] = asked(events);
  t.match(id, /^mcpr_/);
  t.match(code, /^[ABCDEFGHJKMNPQRSTVWXYZ2-9]{6}$/);
  t.match(call, { name: 'shell__run', arguments: '{"command":"ls"}', tool: { entry: 'shell', name: 'run' } });
  t.equal(
    textOfEvents(events),
    'Let me look.\n\nThe tool `shell/run` needs approval, with these arguments:\n`{"command":"ls"}`\n\n' +
      `Reply \`approve ${code}\` or \`deny ${code}\`.`,
  );
  t.strictSame(results(app, 1), [], 'the model is not asked again');
});

t.test('AP-3 AP-4 the line of the next message decides, and the loop goes on where it stopped', async (t) => {
  for (const line of ['approve CODE', 'Approve code.', '  `approve CODE`\n', 'APPROVE all']) {
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
  for (const text of ['What is the weather?', 'approve AAAAAA', 'approve CODE\nand then go', 'approve']) {
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
  t.strictSame(await app.runtime.approvals.list({ limit: 5, order: 'asc' }, ANNA), []);
  await t.rejects(app.runtime.approvals.decide(id, { approve: true }, ANNA), { code: 'approval_expired' });
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
  t.match(textOfEvents(first), /Reply `approve all` or `deny all` for all 3\.$/);
  const second = await app.ask(`approve ${b?.code}\ndeny ${a?.code}`);
  t.strictSame(app.ran, [], 'one is left');
  t.strictSame(
    asked(second).map(({ id }) => id),
    [c?.id],
  );
  t.match(textOfEvents(second), new RegExp(`approve ${c?.code}`));
  t.equal(app.model.asked.length, 1);
  await app.ask('approve all');
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
    app.runtime.approvals.decide(id, { approve: true }, BOSS),
    app.ask(`approve ${code}`),
    app.runtime.approvals.decide(id, { approve: false }, BOSS),
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

t.test('AP-6 another caller decides nothing, and is refused while calls wait', async (t) => {
  const app = await start();
  const [{ code = '', id = '' } = {}] = asked(await app.ask('List it'));
  t.match(endOf(await app.ask(`approve ${code}`, { principal: BEN })), { failure: { code: 'approval_pending' } });
  t.match(endOf(await app.ask('Hello', { principal: BEN })), { failure: { code: 'approval_pending' } });
  const items: ApprovalDecision[] = [{ id, approve: true }];
  t.match(endOf(await app.ask(undefined, { principal: BEN, approvals: items })), { failure: { code: 'approval_pending' } });
  await t.rejects(app.runtime.approvals.decide(id, { approve: true }, BEN), { code: 'approval_not_found' });
  t.strictSame(await app.runtime.approvals.list({ limit: 5, order: 'asc' }, BEN), []);
  t.strictSame(app.ran, []);
  await app.ask(`approve ${code}`);
  t.strictSame(app.ran, ['ls'], 'the caller that asked still decides');
});

t.test('AP-6 ten wrong codes of another caller deny what waits', async (t) => {
  const app = await start();
  const [{ code = '' } = {}] = asked(await app.ask('List it'));
  for (let n = 0; n < 10; n++) await app.ask('approve BBBBBB', { principal: BEN });
  await app.ask(`approve ${code}`);
  t.strictSame(app.ran, []);
  t.strictSame(results(app, 1), ['The call was denied and did not run: too many wrong codes were tried.']);
});

t.test('AP-6 an approver lists and decides, and the loop goes on with the next request', async (t) => {
  const app = await start();
  const [{ id = '' } = {}] = asked(await app.ask('List it'));
  const shown = { id, session: 's', agent: 'assistant', tool: { entry: 'shell', name: 'run' }, arguments: '{"command":"ls"}' };
  for (const principal of [ANNA, BOSS]) t.match(await app.runtime.approvals.list({ limit: 5, order: 'asc' }, principal), [shown]);
  await t.rejects(app.runtime.approvals.decide(id, { approve: true }, { ...BOSS, project: 'other' }), {
    code: 'approval_not_found',
  });
  await t.rejects(app.runtime.approvals.decide(id, { approve: true }, { ...BOSS, agents: ['x'] }), {
    code: 'approval_not_found',
  });
  t.match(await app.runtime.approvals.decide(id, { approve: true }, BOSS), shown);
  t.strictSame(app.ran, [], 'no model or tool runs without a caller');
  await t.rejects(app.runtime.approvals.decide(id, { approve: false }, BOSS), {
    code: 'approval_decided',
    message: /was approved/,
  });
  await app.ask('And then?');
  t.strictSame(app.ran, ['ls']);
  t.match(app.model.asked[1]?.messages.slice(-2), [{ role: 'tool', content: 'done' }, user('And then?')]);
  await t.rejects(app.runtime.approvals.decide(id, { approve: true }, BOSS), { code: 'approval_decided' });
});

t.test('AP-6 on an open server every caller may decide', async (t) => {
  const app = await start();
  const [{ code = '', id = '' } = {}] = asked(await app.ask('List it', { principal: OPEN }));
  t.match(await app.runtime.approvals.list({ limit: 1, order: 'asc' }, OPEN), [{ id }]);
  await app.ask(`approve ${code}`, { principal: OPEN });
  t.strictSame(app.ran, ['ls']);
  t.equal(app.calls[0]?.principal, OPEN);
});

t.test('AP-6 toolVisibility hides arguments and names', async (t) => {
  for (const [toolVisibility, text, shown] of [
    ['names', /^The tool `shell\/run` needs approval\.\n/, { tool: { name: 'run' }, arguments: undefined }],
    ['none', /^An action needs approval\.\n/, { tool: undefined, arguments: undefined }],
  ] as const) {
    const app = await start({ agent: { toolVisibility } });
    const said = textOfEvents(await app.ask('List it'));
    t.match(said, text);
    t.notMatch(said, '"ls"');
    t.match(await app.runtime.approvals.list({ limit: 1, order: 'asc' }, ANNA), [shown]);
  }
});

t.test('AP-6 arguments are checked before a person is asked', async (t) => {
  const app = await start({ steps: [callTools(['shell__run', { command: 7 }]), answerWith('Sorry.')] });
  t.strictSame(asked(await app.ask('Go')), []);
  t.match(results(app, 1), [/do not match the tool's schema/]);
});

t.test('AP-6 a call whose tool has changed since is denied', async (t) => {
  const tools: Tool[] = [tool('run', () => 'done', { command: { type: 'string' } }, ['command'])];
  const app = await start({ tools });
  const [{ code = '' } = {}] = asked(await app.ask('List it'));
  tools[0] = tool('run', () => 'done', { command: { type: 'string' }, force: { type: 'boolean' } }, ['command']);
  await app.ask(`approve ${code}`);
  t.match(results(app, 1), [/was approved but did not run: the tool shell\/run has changed since/]);
});

t.test('AP-7 without a session a call is denied, unless the client has a tool of that name', async (t) => {
  const app = await start();
  await app.ask('List it', { session: undefined });
  t.strictSame(app.ran, []);
  t.match(results(app, 1), [/can only wait for it in a session/]);

  const own = { name: 'shell__run', description: 'Asks a person, then runs.', inputSchema: { type: 'object' as const } };
  const passing = await start({ agent: { clientTools: 'passthrough' } });
  const events = await passing.ask('List it', { session: undefined, clientTools: [own] });
  t.match(endOf(events), { reason: 'tool_calls' });
  t.match(
    events.find(({ type }) => type === 'tool-call'),
    { name: 'shell__run', tool: undefined },
  );
  t.strictSame(passing.ran, []);
});

t.test('AP-7 a caller without an identity cannot be asked', async (t) => {
  const app = await start();
  await app.ask('List it', { principal: { ...ANNA, claims: {} } });
  t.match(results(app, 1), [/its caller has no identity/]);
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

t.test('AP-1 the patterns of `approve`', async (t) => {
  const approves = async (approve: unknown, entry: string, name: string, effect?: Tool['effect']) => {
    const app = await start({ agent: { approve } });
    const agent = app.target() as unknown as { approves(tool: object): boolean };
    return agent.approves({ entry, tool: { name, effect } });
  };
  t.equal(await approves([], 'shell', 'run'), false);
  t.equal(await approves('write', 'shell', 'run', 'write'), true);
  t.equal(await approves('write', 'shell', 'run'), true, 'write is the default effect');
  t.equal(await approves(['write'], 'shell', 'run', 'read'), false);
  t.equal(await approves(['shell'], 'shell', 'run'), true);
  t.equal(await approves(['shell/*'], 'shell', 'run'), true);
  t.equal(await approves(['shell/run'], 'shell', 'run'), true);
  t.equal(await approves(['shell/run'], 'shell', 'runs'), false);
  t.equal(await approves(['shell/r*n'], 'shell', 'run'), true);
  t.equal(await approves(['shell/r*n'], 'shell', 'r'), false);
  t.equal(await approves(['shell/ru*un'], 'shell', 'run'), false);
  t.equal(await approves(['shell/*'], 'clock', 'time'), false);
});

t.test('a session whose calls wait: append is refused, cancel denies, a fork copies them as denied', async (t) => {
  const steps = () => [callTools(['shell__run', { command: 'ls' }]), answerWith('Done.'), answerWith('Done.')];
  const app = await start({ steps: steps() });
  const [{ code = '' } = {}] = asked(await app.ask('List it'));
  await t.rejects(app.runtime.conversations.append(idOf, [user('x')], ANNA), { code: 'approval_pending' });
  await app.runtime.conversations.fork(idOf, { key: 'copy' }, ANNA);
  await app.ask(`approve ${code}`, { session: { key: 'copy' } });
  t.strictSame(app.ran, []);
  t.match(results(app, 1), [/denied and did not run: the conversation was copied/]);
  await app.runtime.conversations.cancel(idOf, ANNA);
  await app.ask(`approve ${code}`);
  t.strictSame(app.ran, []);
  t.match(results(app, 2), [/the conversation was cancelled before anybody approved it/]);
});

t.test('calls of the client in the same step go out with the text, and their results may come with the decision', async (t) => {
  const own = { name: 'browser', description: 'Opens a page.', inputSchema: { type: 'object' as const } };
  const steps = [callTools(['shell__run', { command: 'ls' }], ['browser', {}]), answerWith('Done.')];
  const app = await start({ steps, agent: { clientTools: 'passthrough' } });
  const more = { clientTools: [own] };
  const first = await app.ask('Go', more);
  t.match(endOf(first), { reason: 'tool_calls' });
  const [{ code = '', call } = {}] = asked(first);
  const browser = first.find((event) => event.type === 'tool-call');
  const result = (id: string) => ({ role: 'tool' as const, tool_call_id: id, content: 'opened' });
  const forged = await app.ask(undefined, { ...more, messages: [result(call?.id ?? '')] });
  t.match(endOf(forged), { failure: { code: 'invalid_request' } }, 'the client cannot answer a call that waits');
  const id = browser?.type === 'tool-call' ? browser.id : '';
  await app.ask(undefined, { ...more, messages: [result(id), user(`approve ${code}`)] });
  t.strictSame(app.ran, ['ls']);
  t.strictSame(results(app, 1), ['opened', 'done']);

  const later = await start({ steps, agent: { clientTools: 'passthrough' } });
  const events = await later.ask('Go', more);
  const called = events.find((event) => event.type === 'tool-call');
  const waiting = await later.ask(undefined, { ...more, messages: [result(called?.type === 'tool-call' ? called.id : '')] });
  t.strictSame(
    asked(waiting).map(({ code }) => code),
    asked(events).map(({ code }) => code),
    'it still waits',
  );
  await later.ask('approve all', more);
  t.strictSame(results(later, 1), ['opened', 'done']);
});

t.test('an interceptor postpones a call, and runs again after the approval', async (t) => {
  const seen: string[] = [];
  const guard: ToolInterceptor = (call, next) => {
    seen.push('guard');
    if (call.input.command === 'rm') call.postpone();
    return next(call);
  };
  const steps = [callTools(['shell__run', { command: 'rm' }]), answerWith('Removed.')];
  const app = await start({ steps, agent: { approve: [] }, toolInterceptors: { guard } });
  const events = await app.ask('Remove it');
  t.match(
    events.map(({ type }) => type),
    ['started', 'step', 'usage', 'tool-call', 'approval', 'text', 'finished'],
  );
  t.strictSame(app.ran, []);
  await app.ask(`approve ${asked(events)[0]?.code}`);
  t.strictSame([app.ran, seen], [['rm'], ['guard', 'guard']]);

  const stateless = await start({ steps, agent: { approve: [] }, toolInterceptors: { guard } });
  await stateless.ask('Remove it', { session: undefined });
  t.match(results(stateless, 1), [/can only wait for it in a session/], 'a call that cannot wait is refused');
});

t.test('an interceptor that postpones too late, or catches the error, runs nothing twice', async (t) => {
  const steps = [callTools(['shell__run', { command: 'rm' }]), answerWith('Done.')];
  const late: ToolInterceptor = async (call, next) => {
    const output = await next(call);
    call.postpone();
    return output;
  };
  const app = await start({ steps, agent: { approve: [] }, toolInterceptors: { late } });
  t.strictSame(asked(await app.ask('Remove it')), []);
  t.strictSame(app.ran, ['rm']);
  t.match(
    app.lines.find(({ msg }) => msg === 'a tool interceptor failed'),
    { err: { message: /after the tool had started/ } },
  );

  const caught: ToolInterceptor = async (call, next) => {
    try {
      call.postpone();
    } catch {
      return next(call).catch(() => 'never mind');
    }
    return next(call);
  };
  const careless = await start({ steps, agent: { approve: [] }, toolInterceptors: { caught } });
  t.equal(asked(await careless.ask('Remove it')).length, 1);
  t.strictSame(careless.ran, []);
});

t.test('long arguments are shortened in the text, and cannot pretend to be something else', async (t) => {
  const command = `\`\`\u202e${'x'.repeat(2000)}`;
  const app = await start({ steps: [callTools(['shell__run', { command }]), answerWith('Done.')] });
  const events = await app.ask('Go');
  t.match(textOfEvents(events), /… \(shortened: 20\d\d characters in total\)/);
  t.match(textOfEvents(events), /``` \{"command":"``\\u202exxx/);
  await app.ask('approve all');
  t.strictSame(app.ran, [command], 'what runs is whole');
});
