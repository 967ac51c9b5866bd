import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import t from 'tap';
import {
  answerWith,
  callTools,
  collect,
  endOf,
  request,
  ScriptedModel,
  singleTool,
  startRuntime,
  textOfEvents,
  user,
} from '../harness.js';

const weather: ToolDeclaration = { name: 'weather', description: 'By the caller', inputSchema: { type: 'object' } };

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
