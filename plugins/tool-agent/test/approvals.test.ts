import { definePlugin, ToolSources } from '@plugboard/kernel';
import { Account, type ApprovalDecision, Budget, OPEN } from '@plugboard/kernel/contracts';
import type { ChatRequest } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { asking, calls, collect, family, resultsOf } from './family.js';

function account(): Account {
  const made = new Account(new Budget({ name: 'memory', unit: 'bytes', limit: 1e8, setting: 'limits.memory' }), OPEN);
  made.hold();
  return made;
}

/** A tool that writes lines down. */
function shell(lines: string[]) {
  return definePlugin({
    name: 'shell',
    apiVersion: 1,
    summary: 'Writes lines',
    configSchema: { type: 'object' },
    register(ctx) {
      const append = {
        name: 'append',
        description: 'Appends a line.',
        inputSchema: { type: 'object', properties: { line: { type: 'string' } }, required: ['line'] },
        run: ({ line }: Readonly<Record<string, unknown>>) => `line ${lines.push(String(line))}`,
      };
      ctx.contribute(ToolSources, { tools: () => [append] });
    },
  });
}

const writes = (...lines: readonly string[]) => ({
  text: 'I write.',
  toolCalls: lines.map((line) => ({ name: 'shell__append', arguments: { line } })),
});

interface SceneOptions {
  /** The lines that the child writes in its first step. */
  readonly first?: readonly string[];
  /** And in its second. */
  readonly second?: readonly string[];
  readonly child?: object;
  readonly helper?: Readonly<Record<string, unknown>>;
}

async function scene(t: Test, { first = ['one'], second = [], child = {}, helper = {} }: SceneOptions = {}) {
  const lines: string[] = [];
  const { runtime, run, asked, server } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: { tools: ['shell'], approve: ['shell/*'], ...child } },
    tools: { helper: asking('child', helper), shell: { use: shell(lines) } },
    plays: {
      root: ({ messages }) => (messages.at(-1)?.role === 'user' ? calls(['helper', 'Write']) : { text: 'Done.' }),
      child: ({ messages }) => {
        const steps = messages.filter(({ role }) => role === 'assistant').length;
        const more = [first, second][steps] ?? [];
        return more.length > 0 ? writes(...more) : { text: `It says ${messages.at(-1)?.content}` };
      },
    },
  });
  const turn = (more: object) => collect(run('root', { session: { key: 's' }, ...more }));
  return {
    lines,
    asked,
    runtime,
    server,
    turn,
    ask: () => turn({}),
    decide: (...approvals: readonly ApprovalDecision[]) => turn({ messages: [], approvals }),
    waiting: () => runtime.approvals?.list({ limit: 9, order: 'asc' }, OPEN, account()),
  };
}

function toolMessages({ messages }: ChatRequest | { messages: [] } = { messages: [] }): readonly unknown[] {
  return messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
}

t.test('AG-9 a call of a child waits for a person, and the child goes on after the decision', async (t) => {
  const { lines, asked, ask, decide, waiting, server } = await scene(t);
  const events = await ask();
  const approval = events.find((event) => event.type === 'approval');
  t.match(approval, { call: { name: 'helper', arguments: '{"line":"one"}', tool: { entry: 'helper › shell', name: 'append' } } });
  t.strictSame(resultsOf(events), [], 'the call of the root has no result yet');
  const text = events.map((event) => (event.type === 'text' ? event.text : '')).join('');
  t.match(text, /^The tool `helper › shell\/append` needs approval, with these arguments:\n`\{"line":"one"\}`/);
  t.match(events[0], { type: 'started', mayAsk: true });
  const id = approval?.type === 'approval' ? approval.id : '';
  t.match(await waiting(), [{ id, agent: 'root', session: 's', tool: { entry: 'helper › shell', name: 'append' } }]);
  t.strictSame(lines, []);

  const after = await decide({ id, approve: true });
  t.strictSame(lines, ['one']);
  t.strictSame(resultsOf(after), [{ content: 'It says line 1', isError: false }]);
  t.match(after.at(-1), { type: 'finished', reason: 'stop' });
  t.equal(asked('child').length, 2);
  t.strictSame(
    asked('child')[1]?.messages.map(({ role }) => role),
    ['user', 'assistant', 'tool'],
    'it goes on where it was',
  );
  t.strictSame(toolMessages(asked('root').at(-1)), ['It says line 1']);
  t.strictSame(await waiting(), []);
  const audited = server.logs.find(({ event }) => event === 'approval_requested');
  t.match(audited, { tool: 'helper › shell/append', agent: 'root' });
});

t.test('AG-9 a refusal is final for that call, and the child goes on without it', async (t) => {
  const { lines, asked, ask, decide } = await scene(t);
  const approval = (await ask()).find((event) => event.type === 'approval');
  const after = await decide({ id: approval?.type === 'approval' ? approval.id : '', approve: false, reason: 'Not today' });
  t.strictSame(lines, []);
  t.match(toolMessages(asked('child')[1]), [/^A person denied the call. It did not run. The reason: Not today$/]);
  t.match(resultsOf(after), [{ content: /^It says A person denied the call/, isError: false }]);
});

t.test('AG-9 several calls are asked about one after the other, and later ones again', async (t) => {
  const { lines, ask, decide, asked } = await scene(t, { first: ['one', 'two'], second: ['three'] });
  let events = await ask();
  const shown: unknown[] = [];
  for (const approve of [true, false, true]) {
    const [approval, ...others] = events.filter((event) => event.type === 'approval');
    t.strictSame(others, []);
    if (approval?.type !== 'approval') throw new Error('nothing waits');
    shown.push(approval.call.arguments);
    events = await decide({ id: approval.id, approve });
  }
  t.strictSame(shown, ['{"line":"one"}', '{"line":"two"}', '{"line":"three"}']);
  t.strictSame(lines, ['one', 'three']);
  t.strictSame(resultsOf(events), [{ content: 'It says line 2', isError: false }]);
  t.match(toolMessages(asked('child').at(-1)), ['line 1', /^A person denied/, 'line 2']);
});

t.test('AG-9 another message overtakes what waits, and nothing of the child runs', async (t) => {
  const { lines, ask, turn, asked } = await scene(t);
  await ask();
  const events = await turn({ messages: [{ role: 'user', content: 'Never mind' }] });
  t.strictSame(lines, []);
  t.match(toolMessages(asked('root').at(-1))[0], /denied and did not run: the conversation went on/);
  t.match(events.at(-1), { type: 'finished' });
});

t.test('AG-9 without a session at the root, a call of a child is refused', async (t) => {
  const { lines, asked, turn } = await scene(t);
  await turn({ session: undefined });
  const [refusal] = toolMessages(asked('child')[1]);
  t.match(refusal, /^The call needs the approval of a person, and can only wait for it in a session/);
  t.strictSame(lines, []);
});

t.test('AG-9 a child with a session waits, too, and remembers the whole turn', async (t) => {
  const { lines, ask, decide, asked, turn } = await scene(t, { helper: { session: 'parent' }, second: ['two'] });
  let events = await ask();
  for (const approve of [true, true]) {
    const approval = events.find((event) => event.type === 'approval');
    if (approval?.type !== 'approval') throw new Error('nothing waits');
    events = await decide({ id: approval.id, approve });
  }
  t.strictSame(lines, ['one', 'two']);
  t.strictSame(resultsOf(events), [{ content: 'It says line 2', isError: false }]);
  await turn({ messages: [{ role: 'user', content: 'And now' }] });
  t.strictSame(
    asked('child')
      .at(-1)
      ?.messages.map(({ role }) => role),
    ['user', 'assistant', 'tool', 'assistant', 'tool', 'assistant', 'user'],
  );
});

t.test('AG-9 what the agent of a child hides is not shown to who decides', async (t) => {
  for (const [toolVisibility, tool, text] of [
    ['names', { entry: 'helper › shell', name: 'append' }, '{}'],
    ['none', { entry: 'helper', name: 'helper' }, '{}'],
  ] as const) {
    const { ask, decide, lines } = await scene(t, { child: { toolVisibility } });
    const approval = (await ask()).find((event) => event.type === 'approval');
    if (approval?.type !== 'approval') throw new Error('nothing waits');
    t.strictSame([approval.call.tool, approval.call.arguments], [tool, text]);
    await decide({ id: approval.id, approve: true });
    t.strictSame(lines, ['one']);
  }
});

t.test('AG-9 a call of a grandchild waits with the call of the root', async (t) => {
  const lines: string[] = [];
  const { run, asked } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: { tools: ['deeper'] }, grandchild: { tools: ['shell'], approve: ['shell'] } },
    tools: { helper: asking('child'), deeper: asking('grandchild'), shell: { use: shell(lines) } },
    plays: {
      root: ({ messages }) => (messages.at(-1)?.role === 'user' ? calls(['helper', 'Go']) : { text: 'Done.' }),
      child: ({ messages }) =>
        messages.at(-1)?.role === 'user' ? calls(['deeper', 'Write']) : { text: `Below: ${messages.at(-1)?.content}` },
      grandchild: ({ messages }) => (messages.at(-1)?.role === 'user' ? writes('one') : { text: `${messages.at(-1)?.content}` }),
    },
  });
  const session = { session: { key: 's' } };
  const approval = (await collect(run('root', session))).find((event) => event.type === 'approval');
  if (approval?.type !== 'approval') throw new Error('nothing waits');
  t.strictSame(approval.call.tool, { entry: 'helper › deeper › shell', name: 'append' });
  const events = await collect(run('root', { ...session, messages: [], approvals: [{ id: approval.id, approve: true }] }));
  t.strictSame(lines, ['one']);
  t.strictSame(resultsOf(events), [{ content: 'Below: line 1', isError: false }]);
  t.strictSame([asked('root').length, asked('child').length, asked('grandchild').length], [2, 2, 2]);
});

t.test('AG-9 agents that ask in a circle may need approval if one of them does', async (t) => {
  const { run } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: { tools: ['back'] } },
    tools: { helper: asking('child'), back: asking('root', { depth: 1 }) },
    plays: { root: () => ({ text: 'Hello.' }) },
  });
  const [started] = await collect(run('root', { session: { key: 's' } }));
  t.match(started, { type: 'started', mayAsk: undefined }, 'none does');
});
