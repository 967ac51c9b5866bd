import type { Interceptor } from '@plugboard/kernel';
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
  usage,
  user,
} from '../../harness.js';

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
    usage: { promptTokens: 10, completionTokens: 2, cachedTokens: 1, cacheWriteTokens: 0, reasoningTokens: 0 },
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

t.test('R-045 R-046 limits end a turn successfully, and the third identical call in a row is not run', async (t) => {
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

t.test('the end of a turn has the finish reason of the model server and the stop sequence (AI-4)', async (t) => {
  const named = { rawReason: 'end_turn', stopSequence: '###' };
  const model = new ScriptedModel([
    [
      { type: 'text', text: 'a' },
      { type: 'end', reason: 'stop', ...named },
    ],
    answerWith('b'),
  ]);
  const { runtime, target } = await startRuntime({ models: { fast: model } });
  t.match(endOf(await collect(runtime.run(request(target())))), { type: 'finished', reason: 'stop', ...named });
  const plain = endOf(await collect(runtime.run(request(target()))));
  t.notOk('rawReason' in plain || 'stopSequence' in plain);
});
