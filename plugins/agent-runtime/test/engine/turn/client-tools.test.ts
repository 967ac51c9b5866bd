import type { ToolDeclaration } from '@plugboard/kernel/contracts';
import t from 'tap';
import {
  answerWith,
  call,
  callTools,
  collect,
  endOf,
  type ModelStep,
  request,
  ScriptedModel,
  singleTool,
  startRuntime,
  textOfEvents,
  user,
} from '../../harness.js';

const TOOL_CALLS = { type: 'end', reason: 'tool_calls' } as const;
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

const piece = (id: string, text: string, name = 'weather') => ({ type: 'tool-call-delta', id, name, arguments: text }) as const;

/** The events of a turn of an agent with the tool `own`, whose caller offers `weather`. */
async function streaming(...steps: readonly ModelStep[][]) {
  const model = new ScriptedModel(steps);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['own'], clientTools: 'passthrough' } },
    models: { fast: model },
    tools: { own: singleTool(() => 'done') },
  });
  const asking = (incremental: boolean) => collect(runtime.run(request(target(), { clientTools: [weather], incremental })));
  return { model, asking };
}

t.test('C-104 the pieces of a client call have the id of the call, and its arguments are all of them', async (t) => {
  const turn = [piece('a', ''), piece('a', '{"city"'), call('a', 'weather', '{"city":1}'), call('b', 'weather', {}), TOOL_CALLS];
  const { model, asking } = await streaming(turn, turn);
  const events = await asking(true);
  t.same(model.asked[0]?.streamedTools, ['weather']);
  const [first, second, whole, other] = events.slice(2);
  t.match(whole, { type: 'tool-call', name: 'weather', arguments: '{"city":1}' });
  const id = whole?.type === 'tool-call' ? whole.id : '';
  t.strictSame([first, second], [piece(id, ''), piece(id, '{"city"')]);
  t.not(id, 'a');
  t.match(other, { type: 'tool-call', name: 'weather', arguments: '{}' });
  t.not(other?.type === 'tool-call' && other.id, id);

  const whole2 = await asking(false);
  t.notOk(
    whole2.some(({ type }) => type === 'tool-call-delta'),
    'a caller that reads the answer whole gets no pieces',
  );
  t.same(model.asked[1]?.streamedTools, []);
});

t.test('C-103 the pieces of a call of the agent’s own tool are not sent', async (t) => {
  const { asking } = await streaming([piece('a', '{', 'own'), call('a', 'own', {}), TOOL_CALLS], answerWith('Done.'));
  const events = await asking(true);
  t.notOk(events.some(({ type }) => type === 'tool-call-delta'));
  t.equal(textOfEvents(events), 'Done.');
});

t.test('a call that does not continue what was streamed fails the turn', async (t) => {
  for (const wrong of [
    [call('a', 'weather', { town: 1 })],
    [call('b', 'weather', { city: 1 })],
    [call('a', 'own', { city: 1 })],
    [],
  ]) {
    const { asking } = await streaming([piece('a', '{"city"'), ...wrong, TOOL_CALLS]);
    t.match(endOf(await asking(true)), {
      type: 'failed',
      failure: {
        code: 'model_failed',
        message: "The model connection failed: it changed a call of the tool 'weather' that was already sent.",
      },
    });
  }
});

t.test('a streamed call that is cut off was not made', async (t) => {
  const { asking } = await streaming([piece('a', '{"city"'), call('a', 'weather', '{"ci'), { type: 'end', reason: 'length' }]);
  const events = await asking(true);
  t.same(
    events.map(({ type }) => type),
    ['started', 'step', 'tool-call-delta', 'finished'],
  );
  t.match(endOf(events), { reason: 'length' });
});
