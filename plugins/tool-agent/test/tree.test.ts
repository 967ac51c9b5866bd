import type { AgentEvent } from '@plugboard/kernel';
import type { Usage } from '@plugboard/kernel/contracts';
import { ManualClock, startServer } from '@plugboard/testing';
import t from 'tap';
import { asking, calls, collect, family, type Play, resultsOf, toolNames } from './family.js';

/** Asks once, then answers. */
const askOnce =
  (tool: string, answer = 'Done.'): Play =>
  (_, nth) =>
    nth === 1 ? calls([tool, 'Go on']) : { text: answer };

function finishedOf(events: readonly AgentEvent[]) {
  const last = events.at(-1);
  if (last?.type !== 'finished') throw new Error(`the turn ended with ${JSON.stringify(last)}`);
  return last;
}

t.test('AG-1 depth counts the levels below the root', async (t) => {
  const { asked, run } = await family(t, {
    agents: { root: { tools: ['again'] } },
    tools: { again: asking('root', { depth: 2 }) },
    plays: {
      root: (body, nth) => (nth < 3 && toolNames(body).length > 0 ? calls(['again', `level ${nth}`]) : { text: `answer ${nth}` }),
    },
  });
  const events = await collect(run('root'));
  t.strictSame(
    asked('root').slice(0, 3).map(toolNames),
    [['again'], ['again'], []],
    'the root and its child have the tool, the grandchild is not shown it',
  );
  t.strictSame(resultsOf(events), [{ content: 'answer 4', isError: false }]);
});

t.test('AG-2 model calls of descendants count against the limit of the root', async (t) => {
  const { asked, run } = await family(t, {
    agents: { root: { tools: ['helper'], maxSteps: 4 }, child: { tools: ['clock'] } },
    tools: { helper: asking('child'), clock: {} },
    plays: {
      root: askOnce('helper'),
      child: (_, nth) => ({ text: `Step ${nth}.`, toolCalls: [{ name: 'clock', arguments: { timeZone: `Etc/GMT+${nth}` } }] }),
    },
  });
  const events = await collect(run('root'));
  t.equal(asked('root').length + asked('child').length, 4);
  t.strictSame(resultsOf(events), [{ content: 'Step 1.\nStep 2.\nStep 3.\n[partial: max_steps]', isError: false }]);
  t.match(finishedOf(events), { reason: 'length', limit: 'max_steps' }, 'the root has none left for itself');
});

t.test('AG-2 AG-3 a batch of calls beyond the rest of the root does not run, and a rest of 0 means none', async (t) => {
  let ran = 0;
  const { run } = await family(t, {
    agents: { root: { tools: ['helper'], maxToolCalls: 2 }, child: { tools: ['clock'], maxToolCalls: 1 } },
    tools: { helper: asking('child'), clock: {} },
    plays: {
      root: askOnce('helper'),
      child: ({ messages }, nth) => {
        ran += messages.filter(({ role }) => role === 'tool').length;
        return { text: 'I look.', toolCalls: [1, 2].slice(0, nth).map(() => ({ name: 'clock', arguments: {} })) };
      },
    },
  });
  t.strictSame(resultsOf(await collect(run('root'))), [
    { content: 'I look.\nI look.\n[partial: max_tool_calls]', isError: false },
  ]);
  t.equal(ran, 1);
  ran = 0;
  const events = await collect(run('root', { maxToolCalls: 1 }));
  t.strictSame(resultsOf(events), [], 'the turn that asks has one call');
  t.match(finishedOf(events), { reason: 'stop' });
});

t.test('AG-2 tokens of descendants count against the limit of the root, and each agent has its own', async (t) => {
  const usage = { promptTokens: 50, completionTokens: 10 };
  const { asked, run } = await family(t, {
    agents: {
      root: { tools: ['helper', 'other'], maxTokens: 150 },
      child: { tools: ['clock'] },
      poor: { tools: ['clock'], maxTokens: 60 },
    },
    tools: { helper: asking('child'), other: asking('poor'), clock: {} },
    plays: {
      root: ({ messages }) => ({
        ...(messages.length > 1 ? { text: 'Done.' } : calls([String(messages[0]?.content), 'x'])),
        usage,
      }),
      child: () => ({ text: 'More.', toolCalls: [{ name: 'clock', arguments: {} }], usage }),
      poor: () => ({ text: 'Little.', toolCalls: [{ name: 'clock', arguments: {} }], usage }),
    },
  });
  const say = (content: string) => ({ messages: [{ role: 'user' as const, content }] });
  t.match(resultsOf(await collect(run('root', say('other')))), [{ content: 'Little.\n[partial: max_tokens]' }]);
  const events = await collect(run('root', say('helper')));
  t.match(resultsOf(events), [{ content: 'More.\nMore.\n[partial: max_tokens]' }]);
  t.match(finishedOf(events), { limit: 'max_tokens', usage: { promptTokens: 150, completionTokens: 30 } });
  t.equal(asked('poor').length, 1);
});

t.test('AG-2 fifty calls at once: eight run, the others wait', async (t) => {
  let running = 0;
  let most = 0;
  const full = Promise.withResolvers<void>();
  const { asked, run } = await family(t, {
    agents: { root: { tools: ['helper'], maxSteps: 100 }, child: {} },
    tools: { helper: asking('child') },
    plays: {
      root: (_, nth) =>
        nth === 1
          ? calls(...Array.from({ length: 50 }, (_, at): [string, string] => ['helper', `part ${at}`]))
          : { text: 'Done.' },
      child: async ({ messages }) => {
        most = Math.max(most, ++running);
        if (running === 8) full.resolve();
        await full.promise;
        running--;
        return { text: `about ${messages.at(-1)?.content}` };
      },
    },
  });
  const events = await collect(run('root'));
  const results = resultsOf(events).map(({ content }) => content);
  t.strictSame(new Set(results), new Set(Array.from({ length: 50 }, (_, at) => `about part ${at}`)));
  t.equal(asked('child').length, 50);
  t.equal(most, 8);
});

t.test('AG-2 agents that ask themselves do not wait for each other forever', async (t) => {
  const { run } = await family(t, {
    agents: { root: { tools: ['again'], maxSteps: 100 } },
    tools: { again: asking('root', { depth: 3, maxChildren: 1 }) },
    plays: {
      root: ({ tools, messages }) => {
        const isAsked = messages.some(({ role }) => role === 'tool');
        return tools && !isAsked ? calls(['again', 'left'], ['again', 'right']) : { text: `answer to ${messages[0]?.content}` };
      },
    },
  });
  const results = resultsOf(await collect(run('root'))).map(({ content }) => content);
  t.strictSame(results.toSorted(), ['answer to left', 'answer to right']);
});

t.test('AG-4 the tokens of children are in the usage of the turn once, and nested in its record', async (t) => {
  const used = (promptTokens: number): Partial<Usage> => ({ promptTokens, completionTokens: 1 });
  const { run } = await family(t, {
    agents: { root: { tools: ['first', 'second'] }, child: { tools: ['third'] }, grandchild: {} },
    tools: { first: asking('child'), second: asking('grandchild'), third: asking('grandchild') },
    plays: {
      root: (_, nth) => ({ ...(nth === 1 ? calls(['first', 'a'], ['second', 'b']) : { text: 'Done.' }), usage: used(1000) }),
      child: (_, nth) => ({ ...(nth === 1 ? calls(['third', 'c']) : { text: 'From below.' }), usage: used(100) }),
      grandchild: () => ({ text: 'From far below.', usage: used(10) }),
    },
  });
  const turn = run('root', { id: 'abcdefghijklmnopqrstuvwx' });
  const events = await collect(turn);
  t.match(finishedOf(events).usage, { promptTokens: 2220, completionTokens: 6 });
  const { calls: made = [], usage, steps = [] } = turn.record ?? {};
  t.match(usage, { promptTokens: 2220, completionTokens: 6 });
  t.equal(steps.length, 2);
  t.match(made, [
    {
      state: 'completed',
      nested: {
        agent: 'child',
        usage: { promptTokens: 210 },
        steps: [{ connection: 'of-child' }, { connection: 'of-child' }],
        calls: [{ name: 'third', state: 'completed', nested: { agent: 'grandchild', usage: { promptTokens: 10 }, steps: [{}] } }],
      },
    },
    { nested: { agent: 'grandchild', usage: { promptTokens: 10 }, calls: [] } },
  ]);
});

t.test('AG-5 what happens in a child is nested in the turn, between the call and its result', async (t) => {
  const { run } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: { tools: ['clock'] } },
    tools: { helper: asking('child'), clock: {} },
    plays: {
      root: askOnce('helper'),
      child: (_, nth) => (nth === 1 ? { text: 'I look.', toolCalls: [{ name: 'clock', arguments: {} }] } : { text: 'Noon.' }),
    },
  });
  const events = await collect(run('root'));
  const at = (type: AgentEvent['type']) => events.findIndex((event) => event.type === type);
  const nested = events.flatMap((event) => (event.type === 'nested' ? [event] : []));
  const call = events[at('tool-call')];
  t.ok(at('tool-call') < at('nested') && events.findLastIndex(({ type }) => type === 'nested') < at('tool-result'));
  t.ok(nested.every((event) => call?.type === 'tool-call' && event.call === call.id && event.agent === 'child'));
  t.match(
    nested.flatMap((event) => event.events).filter(({ type }) => type !== 'usage'),
    [
      { type: 'started', agent: 'child' },
      { type: 'step', step: 1 },
      { type: 'text', text: 'I look.' },
      { type: 'tool-call', name: 'clock' },
      { type: 'tool-result' },
      { type: 'step', step: 2 },
      { type: 'text', text: 'Noon.' },
      { type: 'finished' },
    ],
  );
  const text = events.map((event) => (event.type === 'text' ? event.text : '')).join('');
  t.equal(text, 'Done.', 'nothing of a child is text of the turn');
});

t.test('AG-6 cancelling reaches a grandchild', async (t) => {
  const { model, run } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: { tools: ['deeper'] }, grandchild: {} },
    tools: { helper: asking('child'), deeper: asking('grandchild') },
    plays: {
      root: askOnce('helper'),
      child: askOnce('deeper'),
      grandchild: () => ({ text: ['Still thinking', new Promise(() => {})] }),
    },
  });
  const turn = run('root');
  const reading = collect(turn);
  const endless = await model.received(3);
  await turn.cancel();
  t.equal(await endless.ended, 'aborted');
  t.match((await reading).at(-1), { type: 'failed', failure: { code: 'turn_cancelled' } });
});

t.test('AG-6 a child ends at its own timeout, and at the deadline of the root', async (t) => {
  const clock = new ManualClock();
  const { model, run } = await family(t, {
    agents: { root: { tools: ['helper', 'slow'], timeout: '5m' }, child: { timeout: '1m' }, patient: { timeout: '1h' } },
    tools: { helper: asking('child'), slow: asking('patient') },
    plays: {
      root: ({ messages }) => (messages.length === 1 ? calls([String(messages[0]?.content), 'x']) : { text: 'Done.' }),
      child: () => ({ text: ['Half of it', new Promise(() => {})] }),
      patient: () => ({ text: ['Half of it', new Promise(() => {})] }),
    },
    clock,
  });
  const say = (content: string) => ({ messages: [{ role: 'user' as const, content }] });
  const first = collect(run('root', say('helper')));
  const child = await model.received(2);
  await until(() => child.sent >= 2);
  clock.advance(60_000);
  t.match(resultsOf(await first), [
    { content: /^(Half of it\n|The agent did not finish.*\n)\[partial: timed_out\]$/, isError: true },
  ]);
  const second = collect(run('root', say('slow')));
  const patient = await model.received(5);
  clock.advance(300_000);
  t.match((await second).at(-1), { type: 'failed', failure: { code: 'timed_out', message: /within 300 s/ } });
  t.equal(await patient.ended, 'aborted');
});

t.test('AG-6 the timeout of the entry counts where the file sets it', async (t) => {
  const clock = new ManualClock();
  const { model, run } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: {} },
    tools: { helper: asking('child', { timeout: '10s' }) },
    plays: { root: askOnce('helper'), child: () => ({ text: [new Promise(() => {})] }) },
    clock,
  });
  const turn = collect(run('root'));
  const child = await model.received(2);
  clock.advance(10_000);
  t.match(resultsOf(await turn), [{ content: 'The tool did not finish within 10 s and was stopped.', isError: true }]);
  t.equal(await child.ended, 'aborted');
});

t.test('AG-8 the root goes on when the model of a child fails', async (t) => {
  const { run } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: {} },
    tools: { helper: asking('child') },
    plays: { root: askOnce('helper', 'I go on.'), child: () => ({ status: 400, body: { error: { message: 'No.' } } }) },
  });
  const events = await collect(run('root'));
  t.match(resultsOf(events), [{ content: /No\.\n\[partial: model_failed\]$/, isError: true }]);
  t.match(finishedOf(events), { reason: 'stop' });
});

t.test('AG-11 a circle of agents is a mistake with its way, unless an entry sets its depth', async (t) => {
  const file = (depth: string) => `
transports: { http: { port: 0 }, chat-completions: {} }
models: { fast: { use: demo } }
tools:
  to-b: { use: agent, agent: b, description: B }
  to-a: { use: agent, agent: a, description: A${depth} }
agents:
  a: { model: fast, tools: [to-b] }
  b: { model: fast, tools: ["to-a/*"] }
  c: { model: fast, tools: [to-a, to-b] }
`;
  await t.rejects(startServer(file('')), {
    message:
      /plugboard.yaml:8:\d+.*agents ask each other in a circle: "a" asks "b" by tools.to-b, "b" asks "a" by tools.to-a; set "depth" of tools.to-b or tools.to-a to allow it/s,
  });
  const server = await startServer(file(', depth: 3'));
  await server.stop();
});

t.test('AG-12 the third identical call is refused, also of one step', async (t) => {
  const { asked, run } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: {} },
    tools: { helper: asking('child') },
    plays: { root: (_, nth) => (nth === 1 ? calls(['helper', 'x'], ['helper', 'x'], ['helper', 'x']) : { text: 'Done.' }) },
  });
  const results = resultsOf(await collect(run('root')));
  t.equal(asked('child').length, 2);
  t.equal(results.filter(({ content }) => content.startsWith('Repeated call')).length, 1);
});

t.test('AG-14 a child runs in the place of its root, and is no request of its own', async (t) => {
  const { run } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: { tools: ['deeper'] }, grandchild: {} },
    tools: { helper: asking('child'), deeper: asking('grandchild') },
    plays: { root: askOnce('helper'), child: askOnce('deeper', 'From below.') },
    file: { limits: { runningTurns: 1, queuedTurns: 0 } },
  });
  const principal = {
    project: 'default',
    tokenId: 't1',
    scopes: ['chat'],
    limits: { requestsPerMinute: 1, runningTurns: 1 },
  } as const;
  const events = await collect(run('root', { principal }));
  t.strictSame(resultsOf(events), [{ content: 'From below.', isError: false }]);
  t.match((await collect(run('root', { principal }))).at(-1), { failure: { code: 'rate_limited' } });
});

t.test('a slow reader of the turn slows its children down', async (t) => {
  let written = 0;
  const { run } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: {} },
    tools: { helper: asking('child') },
    plays: {
      root: askOnce('helper'),
      child: () => ({
        text: (function* () {
          for (; ; written++) yield 'x'.repeat(1_000);
        })(),
      }),
    },
  });
  const turn = run('root');
  const events = turn[Symbol.asyncIterator]();
  let isNested = false;
  while (!isNested) {
    const { value } = await events.next();
    isNested = value?.some(({ type }: AgentEvent) => type === 'nested');
  }
  for (let round = 0; round < 2_000; round++) await new Promise(setImmediate);
  t.ok(written < 10_000, `the model could write ${written} kB`);
  await turn.cancel();
});

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise(setImmediate);
}

t.test('AG-6 calls that wait for their place end with the turn', async (t) => {
  const { model, run, asked } = await family(t, {
    agents: { root: { tools: ['again'] } },
    tools: { again: asking('root', { depth: 2, maxChildren: 1 }) },
    plays: {
      root: (_, nth) =>
        nth < 3 ? calls(['again', 'left'], ['again', 'right']) : { text: ['Still thinking', new Promise(() => {})] },
    },
  });
  const turn = run('root');
  const reading = collect(turn);
  const endless = await model.received(3);
  await turn.cancel();
  t.equal(await endless.ended, 'aborted');
  t.match((await reading).at(-1), { failure: { code: 'turn_cancelled' } });
  t.equal(asked('root').length, 3, 'the root, one child and one grandchild: the others waited');
});

t.test('AG-6 the disconnect of a caller reaches a child', async (t) => {
  const caller = new AbortController();
  const { model, run } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: { onDisconnect: 'continue' } },
    tools: { helper: asking('child', { session: 'parent' }) },
    plays: { root: askOnce('helper'), child: () => ({ text: ['Still thinking', new Promise(() => {})] }) },
  });
  const reading = collect(run('root', { session: { key: 's' }, signal: caller.signal }));
  const endless = await model.received(2);
  caller.abort();
  t.equal(await endless.ended, 'aborted');
  t.match((await reading).at(-1), { failure: { code: 'abandoned' } });
});
