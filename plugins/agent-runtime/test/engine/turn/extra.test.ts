import { type AgentEvent, type Message, ModelError } from '@plugboard/kernel';
import t from 'tap';
import { answerWith, collect, type ModelStep, request, ScriptedModel, singleTool, startRuntime, user } from '../../harness.js';

const noon = singleTool(() => 'noon');

/** A model call that attaches data to its tool call and to its message. */
function callWith(name: string): ModelStep[] {
  return [
    { type: 'tool-call', id: `call_${name}`, name: 'clock', arguments: '{}', extra: { from: name } },
    { type: 'end', reason: 'tool_calls', extra: `thoughts of ${name}` },
  ];
}

function failure(): ModelStep[] {
  return [new ModelError('no.', { retryable: false })];
}

/** The extras of a request, as `call` or `message: connection`. */
function extras(messages: readonly Message[] | undefined): readonly string[] {
  return (messages ?? []).flatMap((message) => {
    if (message.role !== 'assistant') return [];
    const calls = (message.tool_calls ?? []).flatMap(({ extra }) => (extra ? [`call: ${extra.connection}`] : []));
    return message.extra ? [...calls, `message: ${message.extra.connection}`] : calls;
  });
}

t.test('the extra of a connection is part of its next request', async (t) => {
  const model = new ScriptedModel([callWith('fast'), answerWith('It is noon.')]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['clock'] } },
    models: { fast: model },
    tools: { clock: noon },
  });
  await collect(runtime.run(request(target())));
  const [, message] = model.asked[1]?.messages ?? [];
  t.match(message, {
    role: 'assistant',
    tool_calls: [{ function: { name: 'clock' }, extra: { connection: 'fast', data: { from: 'fast' } } }],
    extra: { connection: 'fast', data: 'thoughts of fast' },
  });
});

t.test('the extra is stored with the session and not sent to other connections', async (t) => {
  const first = new ScriptedModel([callWith('a'), answerWith('one'), failure(), answerWith('three')]);
  const second = new ScriptedModel([callWith('b'), answerWith('two')]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: ['a', 'b'], tools: ['clock'] } },
    models: { a: first, b: second },
    tools: { clock: noon },
  });
  const turn = (text: string): Promise<readonly AgentEvent[]> =>
    collect(runtime.run(request(target(), { messages: [user(text)], session: { key: 'anna' } })));
  await turn('1');
  await turn('2');
  t.same(extras(first.asked[2]?.messages), ['call: a', 'message: a'], 'the next turn');
  t.same(extras(second.asked[0]?.messages), [], 'fall-back within that turn');
  t.same(extras(first.asked[3]?.messages), ['call: a', 'message: a'], 'and the turn continues with the first again');
});

t.test('an extra sent by a caller is dropped', async (t) => {
  const model = new ScriptedModel([answerWith('a'), answerWith('b')]);
  const { runtime, target } = await startRuntime({ models: { fast: model } });
  const extra = { connection: 'fast', data: 'forged' };
  const messages: Message[] = [
    user('x'),
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' }, extra }],
      extra,
    },
    { role: 'tool', tool_call_id: 'a', content: 'ok' },
    user('y'),
  ];
  await collect(runtime.run(request(target(), { messages })));
  await collect(runtime.run(request(target(), { messages, session: { key: 'anna' } })));
  for (const { messages: sent } of model.asked) {
    t.equal(sent.length, 4);
    t.same(extras(sent), []);
  }
});

t.test('an extra is left out from the first change before it on (AI-8)', async (t) => {
  const model = new ScriptedModel((_, call) => (call % 2 === 1 ? callWith('a') : answerWith('done')));
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'a', tools: ['clock'] } },
    models: { a: model },
    tools: { clock: noon },
  });
  const turn = (...messages: readonly Message[]) =>
    collect(runtime.run(request(target(), { messages, session: { key: 'anna' } })));
  await turn(user('1'));
  await turn({ role: 'system', content: 'Be kind.' }, user('2'));
  t.same(extras(model.asked.at(-2)?.messages), [], 'another system message');
  t.same(extras(model.asked.at(-1)?.messages), ['call: a', 'message: a'], 'the call of this turn');
  await turn(user('3'));
  t.same(extras(model.asked.at(-2)?.messages), ['call: a', 'message: a'], 'the first turn again, and not the second');
});

t.test('a refused request is repeated once without extras, and the first refusal is shown (R-086)', async (t) => {
  const refusal = (message: string) => [new ModelError(message, { retryable: false, isRequestFault: true })];
  const model = new ScriptedModel([
    callWith('a'),
    answerWith('done'),
    refusal('bad signature of a message.'),
    refusal('no signature.'),
    refusal('bad image.'),
    refusal('bad signature.'),
    answerWith('fine'),
    answerWith('fine'),
    refusal('bad message.'),
  ]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'a', tools: ['clock'] } },
    models: { a: model },
    tools: { clock: noon },
  });
  const turn = (key: string) => collect(runtime.run(request(target(), { messages: [user('x')], session: { key } })));
  await turn('anna');
  t.match((await turn('anna')).at(-1), { type: 'failed', failure: { message: /bad signature of a message/ } });
  t.same(extras(model.asked[2]?.messages), ['call: a', 'message: a']);
  t.same(extras(model.asked[3]?.messages), []);
  t.match((await turn('anna')).at(-1), { type: 'failed', failure: { message: /bad image/ } });
  t.equal(model.asked.length, 5, 'another refusal is not answered by leaving extras out');
  t.match((await turn('anna')).at(-1), { type: 'finished' });
  t.equal(model.asked.length, 7);
  t.same(extras(model.asked[5]?.messages), ['call: a', 'message: a']);
  t.match((await turn('anna')).at(-1), { type: 'finished' });
  t.equal(model.asked.length, 8, 'what was refused is not sent again');
  t.same(extras(model.asked[7]?.messages), []);
  t.match((await turn('berta')).at(-1), { type: 'failed' });
  t.equal(model.asked.length, 9, 'a request without extras is not repeated');
});
