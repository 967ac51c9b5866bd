import type { Interceptor, ToolCall, Turn } from '@plugboard/kernel';
import { conversationId } from '@plugboard/kernel/contracts';
import t from 'tap';
import { answerWith, callTools, collect, endOf, request, ScriptedModel, singleTool, startRuntime, tool } from '../../harness.js';

const SESSION = { project: 'default', agent: 'assistant', key: 's' };

t.test('interceptors see who asks, from where, and the tools of the agent', async (t) => {
  const turns: Turn[] = [];
  const interceptor: Interceptor = (turn, next) => {
    turns.push(turn);
    return next(turn);
  };
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['dice'] } },
    models: { fast: new ScriptedModel(() => answerWith('ok')) },
    tools: { dice: singleTool(() => '6') },
    interceptors: [interceptor],
  });
  await collect(runtime.run(request(target(), { user: 'ann', transport: 'telegram', session: { key: 's' } })));
  await collect(runtime.run(request(target())));
  const tools = [{ name: 'dice' }];
  t.match(turns, [
    { user: 'ann', transport: 'telegram', session: 'api:s', tools },
    { user: undefined, transport: undefined, session: undefined, tools },
  ]);
});

t.test('an interceptor leaves tools out or describes them differently, and adds none', async (t) => {
  const model = new ScriptedModel((_, call) =>
    call === 1 ? callTools(['desk__close', {}], ['desk__show', {}]) : answerWith('ok'),
  );
  const ran: string[] = [];
  const tools = ['show', 'close'].map((name) => tool(name, () => String(ran.push(name))));
  const interceptor: Interceptor = (turn, next) => {
    const shown = turn.tools.filter(({ name }) => name !== 'desk__close').map((one) => ({ ...one, description: 'Read only.' }));
    return next({ ...turn, tools: [...shown, { name: 'made_up', description: '', inputSchema: {} }] });
  };
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['desk'] } },
    models: { fast: model },
    tools: { desk: { single: false, tools: () => tools } },
    interceptors: [interceptor],
  });
  const events = await collect(runtime.run(request(target())));
  t.equal(endOf(events).type, 'finished');
  t.match(model.asked[0]?.tools, [{ name: 'desk__show', description: 'Read only.' }]);
  t.equal(model.asked[0]?.tools.length, 1);
  t.strictSame(ran, ['show']);
  t.match(
    events.find((event) => event.type === 'tool-result'),
    { isError: true, content: 'There is no tool "desk__close". Available tools: desk__show.' },
  );
});

t.test('a tool call knows its session and its request', async (t) => {
  const calls: ToolCall[] = [];
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['dice'] } },
    models: {
      fast: new ScriptedModel(({ messages }) => (messages.at(-1)?.role === 'tool' ? answerWith('6') : callTools(['dice', {}]))),
    },
    tools: {
      dice: singleTool((_, call) => {
        calls.push(call);
        return '6';
      }),
    },
  });
  await collect(runtime.run(request(target(), { requestId: 'req_7', metadata: { ticket: '4' }, session: { key: 's' } })));
  await collect(runtime.run(request(target())));
  t.match(calls, [
    { session: 'api:s', requestId: 'req_7', metadata: { ticket: '4' } },
    { session: undefined, requestId: 'req_1', metadata: {} },
  ]);
});

t.test('a model request names its request, its user and an opaque id of its session', async (t) => {
  const model = new ScriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool' ? answerWith('6') : callTools(['dice', {}]),
  );
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['dice'] } },
    models: { fast: model },
    tools: { dice: singleTool(() => '6') },
  });
  await collect(runtime.run(request(target(), { requestId: 'req_7', user: 'ann', session: { key: 's' } })));
  await collect(runtime.run(request(target())));
  const origins = model.asked.map(({ requestId, session, user }) => ({ requestId, session, user }));
  const first = { requestId: 'req_7', session: conversationId(SESSION), user: 'ann' };
  const second = { requestId: 'req_1', session: undefined, user: undefined };
  t.strictSame(origins, [first, first, second, second], 'the same for each step');
});
