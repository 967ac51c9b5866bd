import type { Tool } from '@plugboard/kernel';
import t from 'tap';
import { accountOf, answerWith, callTools, endOf, textOfEvents, tool, user } from '../../harness.js';
import { ANNA, asked, results, start } from './support.js';

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
    'Let me look.The tool `shell/run` needs approval, with these arguments:\n`{"command":"ls"}`\n\n' +
      `Reply \`approve ${code}\` or \`deny ${code}\`.`,
  );
  t.strictSame(results(app, 1), [], 'the model is not asked again');
});

t.test('AP-1 the patterns of `approve`', async (t) => {
  const approves = async (approve: unknown, entry: string, name: string, effect?: Tool['effect']) => {
    const app = await start({ agent: { approve } });
    const agent = app.target() as unknown as { approves(tool: object): boolean };
    return agent.approves({ entry, tool: { name }, effect, isChanged: false });
  };
  t.equal(await approves([], 'shell', 'run'), false);
  t.equal(await approves('write', 'shell', 'run', 'write'), true);
  t.equal(await approves('write', 'shell', 'run'), true, 'write is the default effect');
  t.equal(await approves(['write'], 'shell', 'run', 'read'), false);
  t.equal(await approves(['write'], 'shell', 'run', 'idempotent'), true, 'S-73 only reading needs nobody');
  t.equal(await approves(['shell'], 'shell', 'run'), true);
  t.equal(await approves(['shell/*'], 'shell', 'run'), true);
  t.equal(await approves(['shell/run'], 'shell', 'run'), true);
  t.equal(await approves(['shell/run'], 'shell', 'runs'), false);
  t.equal(await approves(['shell/r*n'], 'shell', 'run'), true);
  t.equal(await approves(['shell/r*n'], 'shell', 'r'), false);
  t.equal(await approves(['shell/ru*un'], 'shell', 'run'), false);
  t.equal(await approves(['shell/*'], 'clock', 'time'), false);
});

t.test('S-73 a tool that is new or says something else than at the start needs approval until a reload', async (t) => {
  const declared = (effect: Tool['effect'], description = 'Runs.'): Tool => ({
    ...tool('run', () => 'done', { command: { type: 'string' } }),
    description,
    effect,
  });
  for (const [before, after, waits] of [
    [declared('write'), declared('read'), true],
    [declared('read'), declared('read', 'Runs everything, unasked.'), true],
    [declared('read'), { ...declared('read'), name: 'other' }, true],
    [declared('read'), declared('read'), false],
  ] as const) {
    const tools = [before];
    const call = callTools([`shell__${after.name}`, { command: 'ls' }]);
    const steps = [call, ...(waits ? [] : [answerWith('Done.')]), call, answerWith('Done.')];
    const app = await start({ tools, steps, agent: { approve: 'write' } });
    tools[0] = after;
    t.equal(asked(await app.ask('List it')).length, waits ? 1 : 0, `${after.name} ${after.effect} ${after.description}`);
    await app.runtime.reload(new AbortController().signal);
    t.strictSame(asked(await app.ask('List it', { session: { key: 'reloaded' } })), []);

    const trusting = await start({ tools: [before], steps, agent: { approve: [] } });
    t.strictSame(asked(await trusting.ask('List it')), [], 'an agent without `approve` asks for nothing');
  }
});

t.test('long arguments are shortened in the text, and cannot pretend to be something else', async (t) => {
  const command = `\`\`\u202e${'x'.repeat(2000)}`;
  const app = await start({ steps: [callTools(['shell__run', { command }]), answerWith('Done.')] });
  const events = await app.ask('Go');
  t.match(textOfEvents(events), /… \(shortened: 2003 characters in total\)/);
  t.match(textOfEvents(events), /``` \{"command":"``\\u202exxx/);
  await app.ask(`approve all ${asked(events)[0]?.code}`);
  t.strictSame(app.ran, [command], 'what runs is whole');
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
  t.strictSame(results(app, 1), ['done', 'opened']);

  const later = await start({ steps, agent: { clientTools: 'passthrough' } });
  const events = await later.ask('Go', more);
  const called = events.find((event) => event.type === 'tool-call');
  const waiting = await later.ask(undefined, { ...more, messages: [result(called?.type === 'tool-call' ? called.id : '')] });
  t.strictSame(
    asked(waiting).map(({ code }) => code),
    asked(events).map(({ code }) => code),
    'it still waits',
  );
  await later.ask(`approve ${asked(events)[0]?.code}`, more);
  t.strictSame(results(later, 1), ['done', 'opened']);
});

t.test('S-74 what is shown is what runs: defaults, the order of the schema, each value shortened for itself', async (t) => {
  const properties = { path: { type: 'string' }, force: { type: 'boolean', default: true }, content: { type: 'string' } };
  const ran: unknown[] = [];
  const write: Tool = { ...tool('write', (input) => `done ${ran.push(input)}`, properties), effect: 'write' };
  const content = `${'x'.repeat(5_000)} the end`;
  const written = { content, other: 'a\u200b\u{e0041}\u00a0b', path: '/etc' };
  const app = await start({ tools: [write], steps: [callTools(['shell__write', written]), answerWith('Done.')] });
  const events = await app.ask('Go');
  t.match(
    textOfEvents(events),
    /`\{"path":"\/etc","force":true,"content":"x{150}… \(shortened: 5008 characters in total\) …x+ the end","other":"a\\u200b\\u\{e0041\}\\u00a0b"\}`/,
  );
  const [{ call, code = '' } = {}] = asked(events);
  const whole = { path: '/etc', force: true, content, other: written.other };
  t.equal(call?.arguments, JSON.stringify(whole), 'the item has all of it');
  await app.ask(`approve ${code}`);
  t.strictSame(ran, [whole]);
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
    t.match(await app.runtime.approvals.list({ limit: 1, order: 'asc' }, ANNA, accountOf()), [shown]);
  }
});

t.test('AP-6 arguments are checked before a person is asked', async (t) => {
  const app = await start({ steps: [callTools(['shell__run', { command: 7 }]), answerWith('Sorry.')] });
  t.strictSame(asked(await app.ask('Go')), []);
  t.match(results(app, 1), [/do not match the tool's schema/]);
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
