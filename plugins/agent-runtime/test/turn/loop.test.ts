import type { Interceptor } from '@plugboard/kernel';
import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/kernel/testing';
import t from 'tap';
import {
  answerWith,
  call,
  callTools,
  collect,
  END,
  endOf,
  type ModelStep,
  request,
  ScriptedModel,
  singleTool,
  startRuntime,
  textOfEvents,
  tool,
  usage,
  user,
} from '../harness.js';

const weather: ToolDeclaration = { name: 'weather', description: 'By the caller', inputSchema: { type: 'object' } };

t.test('a turn yields started, step, text, usage and finished with the total usage', async (t) => {
  const { runtime, target } = await startRuntime({ models: { fast: new ScriptedModel([answerWith('Hi')]) } });
  const events = await collect(runtime.run(request(target())));
  t.match(
    events.map(({ type }) => type),
    ['started', 'step', 'text', 'usage', 'finished'],
  );
  t.match(events[1], { step: 1, connection: 'fast' });
  t.strictSame(endOf(events), {
    type: 'finished',
    reason: 'stop',
    usage: { promptTokens: 10, completionTokens: 2, cachedTokens: 1, reasoningTokens: 0 },
  });
});

t.test('C-053 C-054 the agent’s prompt comes first, and a caller’s system message replaces it', async (t) => {
  const model = new ScriptedModel([answerWith('a'), answerWith('b')]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', system: 'Be brief.' } },
    models: { fast: model },
  });
  await collect(runtime.run(request(target())));
  await collect(runtime.run(request(target(), { messages: [user('x'), { role: 'system', content: 'Be long.' }, user('y')] })));
  t.strictSame(model.asked[0]?.messages, [{ role: 'system', content: 'Be brief.' }, user('Hello')]);
  t.strictSame(model.asked[1]?.messages, [user('x'), { role: 'system', content: 'Be long.' }, user('y')]);
});

t.test('tools run, and the model receives their results, step after step', async (t) => {
  const model = new ScriptedModel([
    [{ type: 'text', text: 'Let me see.' }, ...callTools(['add', { a: 1, b: 2 }])],
    answerWith('It is 3.'),
  ]);
  const add = singleTool((input) => String(Number(input.a) + Number(input.b)), { a: { type: 'number' }, b: { type: 'number' } }, [
    'a',
    'b',
  ]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['add'] } },
    models: { fast: model },
    tools: { add },
  });
  const events = await collect(runtime.run(request(target())));
  t.match(
    events.map(({ type }) => type),
    ['started', 'step', 'text', 'usage', 'tool-call', 'tool-result', 'step', 'text', 'usage', 'finished'],
  );
  t.match(events[4], { name: 'add', arguments: '{"a":1,"b":2}', tool: { entry: 'add', name: 'only' } });
  t.match(events[5], { id: 'call_000000000000000000000002', content: '3', isError: false });
  t.strictSame(model.asked[0]?.tools, [
    {
      name: 'add',
      description: 'The tool only.',
      inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } }, required: ['a', 'b'] },
    },
  ]);
  t.strictSame(model.asked[1]?.messages, [
    user('Hello'),
    {
      role: 'assistant',
      content: 'Let me see.',
      tool_calls: [
        { id: 'call_000000000000000000000002', type: 'function', function: { name: 'add', arguments: '{"a":1,"b":2}' } },
      ],
    },
    { role: 'tool', tool_call_id: 'call_000000000000000000000002', content: '3' },
  ]);
  t.match(endOf(events), { usage: { promptTokens: 20, completionTokens: 5 } }, 'C-078 usage sums all model calls');
});

t.test('R-047 calls of one step run concurrently, and their results keep the order of the calls', async (t) => {
  const slow = Promise.withResolvers<string>();
  const order: string[] = [];
  const tools = {
    slow: singleTool(async () => {
      order.push('slow begins');
      return slow.promise;
    }),
    quick: singleTool((_, { progress }) => {
      order.push('quick begins');
      progress('half way', 0.5);
      slow.resolve('slow result');
      return 'quick result';
    }),
  };
  const model = new ScriptedModel([callTools(['slow', {}], ['quick', {}]), answerWith('done')]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['slow', 'quick'] } },
    models: { fast: model },
    tools,
  });
  const events = await collect(runtime.run(request(target())));
  t.strictSame(order, ['slow begins', 'quick begins']);
  t.strictSame(
    events.flatMap((event) => (event.type === 'tool-result' ? [event.content] : [])),
    ['slow result', 'quick result'],
  );
  t.match(
    events.find(({ type }) => type === 'tool-progress'),
    { id: 'call_000000000000000000000003', message: 'half way', fraction: 0.5 },
  );
});

t.test('turn id and index of a call are unique together', async (t) => {
  const seen: string[] = [];
  const own = singleTool((_, { turnId, index }) => {
    seen.push(`${turnId}/${index}`);
    return '';
  });
  const model = new ScriptedModel([
    callTools(['own', { n: 1 }], ['own', { n: 2 }]),
    callTools(['own', { n: 3 }]),
    callTools(['theirs', {}], ['own', { n: 4 }]),
  ]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['own'], clientTools: 'passthrough' } },
    models: { fast: model },
    tools: { own },
  });
  const clientTools = [{ name: 'theirs', description: '', inputSchema: { type: 'object' } }];
  const events = await collect(runtime.run(request(target(), { clientTools })));
  const [started] = events;
  const turnId = started?.type === 'started' && started.turnId;
  t.strictSame(seen, [`${turnId}/0`, `${turnId}/1`, `${turnId}/2`, `${turnId}/4`]);
});

t.test('R-040 R-042 tool errors and invalid arguments go to the model, and the turn continues', async (t) => {
  const tools = {
    strict: singleTool(() => 'fine', { n: { type: 'number' } }, ['n']),
    sync: singleTool(() => {
      throw new Error('no such city');
    }),
    late: singleTool(() => Promise.reject('just a string')),
    nothing: singleTool(() => Promise.reject(null)),
    odd: singleTool(() => 42 as never),
    broken: singleTool(() => ({ content: [null] }) as never),
  };
  const model = new ScriptedModel([
    [
      call('1', 'strict', '{"n":'),
      call('2', 'strict', '[1]'),
      call('3', 'strict', { n: 'one' }),
      call('4', 'strict', { n: 1, ['__proto__']: { admin: true } }),
      call('5', 'sync', ''),
      call('6', 'late', {}),
      call('7', 'nothing', {}),
      call('8', 'odd', {}),
      call('9', 'absent', {}),
      call('10', 'broken', {}),
      END,
    ],
    answerWith('sorry'),
  ]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: Object.keys(tools) } },
    models: { fast: model },
    tools,
  });
  const events = await collect(runtime.run(request(target())));
  const results = events.flatMap((event) =>
    event.type === 'tool-result' ? [`${event.isError ? 'error' : 'ok'}: ${event.content}`] : [],
  );
  t.match(results, [
    /^error: The arguments are not a valid JSON object: \{"n":/,
    /^error: The arguments are not a valid JSON object: \[1\]/,
    /^error: The arguments do not match the tool's schema: \/n must be number/,
    'ok: fine',
    'error: The tool failed: no such city',
    'error: The tool failed: just a string',
    'error: The tool failed: no reason given',
    /^error: The tool returned neither text nor content parts/,
    /^error: There is no tool "absent"\. Available tools: strict, sync/,
    /^error: The tool failed: /,
  ]);
  t.match(endOf(events), { type: 'finished', reason: 'stop' });
});

t.test('R-043 a tool that hangs is stopped at its entry’s time limit', async (t) => {
  const clock = new ManualClock();
  const begun = Promise.withResolvers<AbortSignal>();
  const hang = singleTool((_, { signal }) => {
    begun.resolve(signal);
    return new Promise(() => {});
  });
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['hang'] } },
    models: { fast: new ScriptedModel([callTools(['hang', {}]), answerWith('moving on')]) },
    tools: { hang },
    shared: { hang: { timeout: '5s' } },
    clock,
  });
  const turn = collect(runtime.run(request(target())));
  const signal = await begun.promise;
  clock.advance(4999);
  t.notOk(signal.aborted);
  clock.advance(1);
  t.ok(signal.aborted);
  const events = await turn;
  t.match(
    events.find(({ type }) => type === 'tool-result'),
    { isError: true, content: /did not finish within 5 s/ },
  );
  t.equal(textOfEvents(events), 'moving on');
});

t.test('R-044 a result longer than the entry’s limit is truncated to it, including the note', async (t) => {
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['big', 'fits'] } },
    models: { fast: new ScriptedModel([callTools(['big', {}], ['fits', {}]), answerWith('ok')]) },
    tools: { big: singleTool(() => 'ä'.repeat(5000)), fits: singleTool(() => 'x'.repeat(1024)) },
    shared: { big: { resultLimit: '1kb' }, fits: { resultLimit: '1kb' } },
  });
  const [big, fits] = (await collect(runtime.run(request(target())))).flatMap((event) =>
    event.type === 'tool-result' ? [event.content] : [],
  );
  t.ok(Buffer.byteLength(big ?? '') <= 1024);
  t.match(big, /^ä+\n… \[truncated: 10000 bytes in total\]$/);
  t.equal(fits, 'x'.repeat(1024));
});

t.test('result parts become text, images go to a model that accepts them, and other content is named', async (t) => {
  const camera = singleTool(() => ({
    content: [
      { type: 'text', text: 'A cat' },
      { type: 'image', mimeType: 'image/png', data: 'aGVsbG8=' },
      { type: 'other', kind: 'audio/wav', bytes: 12 },
    ],
  }));
  const app = (model: ScriptedModel) => ({
    agents: { assistant: { model: 'fast', tools: ['camera'] } },
    models: { fast: model },
    tools: { camera },
  });
  const seeing = new ScriptedModel([callTools(['camera', {}]), answerWith('a cat')]);
  const blind = new ScriptedModel([callTools(['camera', {}]), answerWith('a cat?')], ['text']);
  for (const model of [seeing, blind]) {
    const { runtime, target } = await startRuntime(app(model));
    await collect(runtime.run(request(target())));
  }
  t.match(seeing.asked[1]?.messages.slice(-2), [
    { role: 'tool', content: 'A cat\n[audio/wav, 12 bytes: this model does not accept such content]' },
    { role: 'user', content: [{ type: 'text' }, { type: 'image_url', image_url: { url: 'data:image/png;base64,aGVsbG8=' } }] },
  ]);
  t.match(blind.asked[1]?.messages.at(-1), {
    role: 'tool',
    content:
      'A cat\n[image/png, 6 bytes: this model does not accept images]\n[audio/wav, 12 bytes: this model does not accept such content]',
  });
});

t.test('R-045 R-046 budgets end a turn successfully, and the third identical call in a row is not run', async (t) => {
  let ran = 0;
  const tools = { again: singleTool(() => `run ${++ran}`) };
  const endless = () => new ScriptedModel(() => callTools(['again', {}]));
  const app = (agent: object, model = endless()) => ({
    agents: { assistant: { model: 'fast', tools: ['again'], ...agent } },
    models: { fast: model },
    tools,
  });

  const steps = await startRuntime(app({ maxSteps: 5 }));
  const events = await collect(steps.runtime.run(request(steps.target())));
  t.match(endOf(events), { type: 'finished', reason: 'length', limit: 'max_steps', usage: { promptTokens: 50 } });
  t.equal(textOfEvents(events), 'The agent reached its limit of 5 model calls before it finished.');
  t.equal(ran, 2, 'the third and fourth call were answered by an error');
  t.equal(events.filter(({ type }) => type === 'tool-call').length, 4, 'the call of the last step is not run');

  const toolCalls = await startRuntime(app({ maxToolCalls: 1 }));
  t.match(endOf(await collect(toolCalls.runtime.run(request(toolCalls.target())))), {
    reason: 'length',
    limit: 'max_tool_calls',
  });

  const asked = await startRuntime(app({ maxToolCalls: 3 }));
  const within = await collect(asked.runtime.run(request(asked.target(), { maxToolCalls: 2 })));
  t.match(endOf(within), { reason: 'length', limit: 'max_tool_calls' });
  t.equal(within.filter(({ type }) => type === 'tool-call').length, 2, 'a request allows fewer than its agent');
  const beyond = await collect(asked.runtime.run(request(asked.target(), { maxToolCalls: 9 })));
  t.equal(beyond.filter(({ type }) => type === 'tool-call').length, 3, 'and never more');

  const tokens = await startRuntime(app({ maxTokens: 26 }));
  t.match(endOf(await collect(tokens.runtime.run(request(tokens.target())))), {
    reason: 'length',
    limit: 'max_tokens',
    usage: { promptTokens: 20 },
  });

  const spoke = await startRuntime(
    app({ maxSteps: 1 }, new ScriptedModel([[{ type: 'text', text: 'So far.' }, ...callTools(['again', {}])]])),
  );
  t.equal(
    textOfEvents(await collect(spoke.runtime.run(request(spoke.target())))),
    'So far.',
    'no sentence where something was said',
  );
});

t.test('C-082 an answer cut by length or a filter ends the turn, and its incomplete tool call is dropped', async (t) => {
  for (const reason of ['length', 'content_filter'] as const) {
    const model = new ScriptedModel([[{ type: 'text', text: 'Once upon' }, call('1', 'x', '{"a'), { type: 'end', reason }]]);
    const { runtime, target } = await startRuntime({ models: { fast: model } });
    const events = await collect(runtime.run(request(target())));
    t.match(endOf(events), { type: 'finished', reason });
    t.notOk(events.some(({ type }) => type === 'tool-call'));
  }
});

t.test('C-061 the agent’s params override the caller’s, and supported others reach the model', async (t) => {
  const model = new ScriptedModel([answerWith('a')]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', params: { temperature: 0.2, max_completion_tokens: 50 } } },
    models: { fast: model },
  });
  await collect(
    runtime.run(request(target(), { params: { temperature: 1, top_p: 0.5, max_tokens: 9, seed: 7, tool_choice: 'auto' } })),
  );
  t.strictSame(model.asked[0]?.params, { top_p: 0.5, temperature: 0.2, max_completion_tokens: 50 });
  t.strictSame(
    ['temperature', 'max_tokens', 'top_p', 'seed'].map((name) => target().forwardsParam(name)),
    [false, false, true, false],
  );
});

t.test('the newer of two names for one parameter wins', async (t) => {
  const model = new ScriptedModel([answerWith('a')]);
  const { runtime, target } = await startRuntime({ models: { fast: model } });
  await collect(runtime.run(request(target(), { params: { max_tokens: 9, max_completion_tokens: 7 } })));
  t.strictSame(model.asked[0]?.params, { max_completion_tokens: 7 });
});

t.test('a raw model makes one call, declares the caller’s tools and returns every call', async (t) => {
  const model = new ScriptedModel([callTools(['weather', { city: 'Rome' }])]);
  const { runtime, target } = await startRuntime({ models: { fast: model } });
  const events = await collect(
    runtime.run(request(target('fast'), { clientTools: [weather], params: { tool_choice: 'required' } })),
  );
  t.match(model.asked[0], { tools: [weather], params: { tool_choice: 'required' }, messages: [user('Hello')] });
  t.match(
    events.find(({ type }) => type === 'tool-call'),
    { name: 'weather', tool: undefined },
  );
  t.match(endOf(events), { type: 'finished', reason: 'tool_calls' });
});

t.test('an agent that ignores client tools does not declare them to the model', async (t) => {
  const model = new ScriptedModel([answerWith('a')]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', clientTools: 'ignore' } },
    models: { fast: model },
  });
  await collect(runtime.run(request(target(), { clientTools: [weather], params: { tool_choice: 'auto' } })));
  t.match(model.asked[0], { tools: [] });
  t.strictSame(model.asked[0]?.params, {});
});

t.test('an agent without clientTools declares the tools of the transport', async (t) => {
  const model = new ScriptedModel([callTools(['weather', {}])]);
  const { runtime, target } = await startRuntime({ models: { fast: model } });
  t.equal(target().clientTools, undefined);
  const events = await collect(runtime.run(request(target(), { clientTools: [weather] })));
  t.match(model.asked[0]?.tools, [{ name: 'weather' }]);
  t.match(endOf(events), { type: 'finished', reason: 'tool_calls' });
});

t.test(
  'passthrough: own tools run, client calls are returned, and earlier results are restored in the next request',
  async (t) => {
    let ran = 0;
    const model = new ScriptedModel([
      callTools(['own', {}]),
      callTools(['own', { again: true }], ['weather', {}]),
      answerWith('Sunny.'),
    ]);
    const { runtime, target } = await startRuntime({
      agents: { assistant: { model: 'fast', tools: ['own'], clientTools: 'passthrough' } },
      models: { fast: model },
      tools: { own: singleTool(() => `own ${++ran}`) },
    });
    const first = await collect(runtime.run(request(target(), { clientTools: [weather], params: { tool_choice: 'required' } })));
    t.match(endOf(first), { type: 'finished', reason: 'tool_calls' });
    t.equal(ran, 2);
    t.equal(model.asked[0]?.params.tool_choice, 'required');
    t.equal(model.asked[1]?.params.tool_choice, undefined, 'what must be called has been called');

    const [called] = first.filter((event) => event.type === 'tool-call' && event.tool === undefined);
    const handed = {
      id: called?.type === 'tool-call' ? called.id : '',
      type: 'function',
      function: { name: 'weather', arguments: '{}' },
    } as const;
    const back = [
      user('Hello'),
      { role: 'assistant', content: null, tool_calls: [handed] },
      { role: 'tool', tool_call_id: handed.id, content: 'sun' },
    ] as const;
    const second = await collect(runtime.run(request(target(), { clientTools: [weather], messages: back })));
    t.equal(textOfEvents(second), 'Sunny.');
    t.equal(ran, 2, 'each tool ran once');
    t.match(
      model.asked[2]?.messages.map(({ role, content }) => [role, content]),
      [
        ['user', 'Hello'],
        ['assistant', null],
        ['tool', 'own 1'],
        ['assistant', null],
        ['tool', 'own 2'],
        ['tool', 'sun'],
      ],
    );

    const stranger = [user('Something else'), ...back.slice(1)];
    await collect(runtime.run(request(target(), { clientTools: [weather], messages: stranger })));
    t.strictSame(model.asked[3]?.messages, stranger, 'the same id under other words is somebody else’s');
  },
);

t.test('a client tool with the name of an own tool is refused with its place', async (t) => {
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['weather'], clientTools: 'passthrough' } },
    models: { fast: new ScriptedModel([]) },
    tools: { weather: singleTool(() => '') },
  });
  const events = await collect(runtime.run(request(target(), { clientTools: [weather] })));
  t.match(events, [{ type: 'failed', failure: { code: 'invalid_request', param: 'tools[0].function.name', toolsRan: false } }]);
});

t.test('a model stream without a proper end fails the turn', async (t) => {
  const scripts: ModelStep[][] = [[{ type: 'text', text: 'Half' }], [{ type: 'text', text: 'Half' }, new Error('a defect')]];
  for (const script of scripts) {
    const { runtime, target } = await startRuntime({ models: { fast: new ScriptedModel([script]) } });
    const events = await collect(runtime.run(request(target())));
    t.equal(textOfEvents(events), 'Half');
    t.equal(endOf(events).type, 'failed');
    t.equal(events.filter(({ type }) => type === 'finished' || type === 'failed').length, 1);
  }
});

t.test('reasoning is passed on and not sent to the model again', async (t) => {
  const model = new ScriptedModel([
    [{ type: 'reasoning', text: 'Hmm' }, ...callTools(['own', {}])],
    [usage(1, 1), { type: 'text', text: 'x' }, END],
  ]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['own'] } },
    models: { fast: model },
    tools: { own: singleTool(() => 'r') },
  });
  const events = await collect(runtime.run(request(target())));
  t.match(events[2], { type: 'reasoning', text: 'Hmm' });
  t.match(model.asked[1]?.messages[1], { role: 'assistant', content: null });
});

t.test('tools of a multi-tool entry are named by entry and tool, and patterns select them', async (t) => {
  const files = { single: false, tools: () => listed };
  const listed = [tool('read', () => 'r'), tool('write', () => 'w')];
  const model = new ScriptedModel(() => answerWith('x'));
  const names = async (patterns: string[]) => {
    const { runtime, target } = await startRuntime({
      agents: { assistant: { model: 'fast', tools: patterns } },
      models: { fast: model },
      tools: { files },
    });
    await collect(runtime.run(request(target())));
    return model.asked.at(-1)?.tools.map(({ name }) => name);
  };
  t.strictSame(await names(['files']), ['files__read', 'files__write']);
  t.strictSame(await names(['files/*']), ['files__read', 'files__write']);
  t.strictSame(await names(['files/write']), ['files__write']);
});

t.test('an interceptor gets the prompt as `system`, and system messages that it adds never replace it', async (t) => {
  const seen: unknown[] = [];
  const adds: Interceptor = (turn, next) => {
    seen.push(turn.system);
    return next({ ...turn, messages: [{ role: 'system', content: 'Be brief.' }, ...turn.messages] });
  };
  const changes: Interceptor = (turn, next) => next({ ...turn, system: turn.system && `${turn.system} Today is Friday.` });
  const model = new ScriptedModel([answerWith('Hi'), answerWith('Hi'), answerWith('Hi')]);
  const settings = { assistant: { model: 'fast', system: 'You are kind.' }, plain: { model: 'fast' } };
  const { runtime, target } = await startRuntime({ models: { fast: model }, interceptors: [adds, changes], agents: settings });
  await collect(runtime.run(request(target('assistant'), { messages: [user('Hello')] })));
  await collect(runtime.run(request(target('plain'), { messages: [user('Hello')] })));
  await collect(
    runtime.run(request(target('assistant'), { messages: [{ role: 'system', content: 'From the caller.' }, user('Hello')] })),
  );
  t.strictSame(seen, ['You are kind.', undefined, undefined]);
  t.strictSame(
    model.asked.map(({ messages }) => messages.filter(({ role }) => role === 'system').map(({ content }) => content)),
    [['You are kind. Today is Friday.\n\nBe brief.'], ['Be brief.'], ['Be brief.', 'From the caller.']],
  );
});
