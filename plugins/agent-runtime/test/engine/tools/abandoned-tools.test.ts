import { setImmediate } from 'node:timers/promises';
import type { Interceptor, ToolCall } from '@plugboard/kernel';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { eventChannels } from '../../../src/engine/diagnostics/channels.js';
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
} from '../../harness.js';

/** A tool that ends when a test says so, whatever its signal says. */
function deaf() {
  const begun = Promise.withResolvers<ToolCall>();
  const ended = Promise.withResolvers<string>();
  const source = singleTool((_, call) => {
    begun.resolve(call);
    return ended.promise;
  });
  return { source, begun: begun.promise, end: () => ended.resolve('too late') };
}

async function idempotentClient(tool: ReturnType<typeof deaf>, more: { interceptors?: Interceptor[]; shared?: object } = {}) {
  const clock = new ManualClock();
  const model = new ScriptedModel([callTools(['deaf', {}]), answerWith('and on'), answerWith('again')]);
  const app = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['deaf'] } },
    models: { fast: model },
    tools: { deaf: tool.source },
    clock,
    ...more,
    shared: { deaf: { ...more.shared } },
  });
  const abandoned = () => app.lines.filter(({ event }) => event === 'tool_abandoned');
  const send = (signal = new AbortController().signal, text = 'Hello') =>
    collect(app.runtime.run(request(app.target(), { signal, messages: [user(text)], session: { key: 's' } })));
  return { ...app, clock, model, abandoned, send };
}

t.test('R-022 a tool that ignores its signal is abandoned after five seconds and reported once', async (t) => {
  const counted: unknown[] = [];
  const count = (context: unknown) => counted.push(context);
  eventChannels.toolAbandoned.subscribe(count);
  t.teardown(() => eventChannels.toolAbandoned.unsubscribe(count));
  const tool = deaf();
  const { runtime, target, clock, abandoned } = await idempotentClient(tool);
  const caller = new AbortController();
  const turn = collect(runtime.run(request(target(), { signal: caller.signal })));
  const { signal, turnId } = await tool.begun;
  caller.abort();
  t.ok(signal.aborted, 'its signal is aborted at once');
  t.match(endOf(await turn), { failure: { code: 'abandoned', toolsRan: true } }, 'and so is the caller');
  clock.advance(4_999);
  t.strictSame(abandoned(), []);
  clock.advance(1);
  t.match(abandoned(), [{ level: 'warn', entry: 'deaf', tool: 'only', agent: 'assistant', request_id: 'req_1' }]);
  t.match(counted, [{ entry: 'deaf', tool: 'only', id: /^call_[0-9A-Za-z]{24}$/, turn: { id: turnId } }]);
  tool.end();
  await setImmediate();
  clock.advance(60_000);
  t.equal(abandoned().length, 1);
  t.equal(clock.pending, 0);
});

t.test('R-022 a tool that ends within five seconds is not reported', async (t) => {
  const tool = deaf();
  const { runtime, target, clock, abandoned } = await idempotentClient(tool);
  const caller = new AbortController();
  const turn = collect(runtime.run(request(target(), { signal: caller.signal })));
  await tool.begun;
  caller.abort();
  await turn;
  clock.advance(4_999);
  tool.end();
  await setImmediate();
  t.equal(clock.pending, 0);
  t.strictSame(abandoned(), []);
});

t.test('the next turn of a session begins when the tools of the previous turn have ended or were abandoned', async (t) => {
  for (const ends of [true, false]) {
    const tool = deaf();
    const { store, clock, model, send } = await idempotentClient(tool);
    const caller = new AbortController();
    const first = send(caller.signal);
    await tool.begun;
    caller.abort();
    t.match(endOf(await first), { failure: { code: 'abandoned' } });
    const second = send();
    clock.advance(4_999);
    await setImmediate();
    t.equal(model.asked.length, 1, 'it waits');
    if (ends) tool.end();
    else clock.advance(1);
    t.equal(textOfEvents(await second), 'and on');
    t.strictSame(
      (await store.load({ project: 'default', agent: 'assistant', key: 's' })).messages,
      [user('Hello'), { role: 'assistant', content: 'and on' }],
      'nothing is kept of what came too late',
    );
  }
});

t.test('a turn that waits for earlier tools can be cancelled, and other sessions do not wait', async (t) => {
  const tool = deaf();
  const { runtime, target, clock, send } = await idempotentClient(tool);
  const first = new AbortController();
  const turn = send(first.signal);
  await tool.begun;
  first.abort();
  await turn;
  const other = await collect(runtime.run(request(target(), { session: { key: 'other' } })));
  t.equal(textOfEvents(other), 'and on');
  const second = new AbortController();
  const waiting = send(second.signal);
  await setImmediate();
  second.abort();
  t.match(endOf(await waiting), { failure: { code: 'abandoned' } });
  clock.advance(5_000);
  t.equal(textOfEvents(await send()), 'again');
});

t.test('R-043 a tool that exceeds its time limit by five seconds is reported, and the turn continues', async (t) => {
  const tool = deaf();
  const { runtime, target, clock, abandoned } = await idempotentClient(tool, { shared: { timeout: '60s' } });
  const turn = collect(runtime.run(request(target())));
  const { signal, progress } = await tool.begun;
  clock.advance(60_000);
  t.ok(signal.aborted);
  progress('I go on all the same');
  const events = await turn;
  t.match(
    events.find(({ type }) => type === 'tool-result'),
    { isError: true, content: /did not finish within 60 s/ },
  );
  t.equal(textOfEvents(events), 'and on');
  t.notOk(
    events.some(({ type }) => type === 'tool-progress'),
    'progress after its end is dropped',
  );
  t.strictSame(abandoned(), []);
  clock.advance(5_000);
  t.equal(abandoned().length, 1);
});

t.test('tools are aborted when their turn crashes', async (t) => {
  const tool = deaf();
  const breaks: Interceptor = async function* (turn, next) {
    for await (const batch of next(turn)) {
      if (batch.some(({ type }) => type === 'tool-progress')) throw new Error('a defect');
      yield batch;
    }
  };
  const { runtime, target, clock, abandoned } = await idempotentClient(tool, { interceptors: [breaks] });
  const turn = collect(runtime.run(request(target())));
  const { signal, progress } = await tool.begun;
  t.notOk(signal.aborted);
  progress('half way');
  t.match(endOf(await turn), { failure: { code: 'crashed' } });
  t.ok(signal.aborted);
  clock.advance(5_000);
  t.equal(abandoned().length, 1);
});

t.test('a call whose turn has already ended is not run', async (t) => {
  const caller = new AbortController();
  const ran: string[] = [];
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['ends', 'never'] } },
    models: { fast: new ScriptedModel([callTools(['ends', {}], ['never', {}])]) },
    tools: {
      ends: singleTool(() => {
        ran.push('ends');
        caller.abort();
        return '';
      }),
      never: singleTool(() => {
        ran.push('never');
        return '';
      }),
    },
  });
  t.match(endOf(await collect(runtime.run(request(target(), { signal: caller.signal })))), { failure: { code: 'abandoned' } });
  t.strictSame(ran, ['ends']);
});
