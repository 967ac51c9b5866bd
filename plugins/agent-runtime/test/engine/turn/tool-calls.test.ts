import type { AgentEvent } from '@plugboard/kernel';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import {
  answerWith,
  call,
  callTools,
  collect,
  END,
  endOf,
  request,
  ScriptedModel,
  singleTool,
  startRuntime,
  textOfEvents,
  tool,
  user,
} from '../../harness.js';

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

t.test('R-047 results come when their calls end, and the history keeps the order of the calls', async (t) => {
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
      return 'quick result';
    }),
  };
  const model = new ScriptedModel([callTools(['slow', {}], ['quick', {}]), answerWith('done')]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['slow', 'quick'] } },
    models: { fast: model },
    tools,
  });
  const events: AgentEvent[] = [];
  for await (const batch of runtime.run(request(target()))) {
    events.push(...batch);
    // Only the result of the second call lets the first one end.
    if (batch.some((event) => event.type === 'tool-result' && event.content === 'quick result')) slow.resolve('slow result');
  }
  t.strictSame(order, ['slow begins', 'quick begins']);
  t.strictSame(
    events.flatMap((event) => (event.type === 'tool-result' ? [event.content] : [])),
    ['quick result', 'slow result'],
  );
  t.match(
    events.find(({ type }) => type === 'tool-progress'),
    { id: 'call_000000000000000000000003', message: 'half way', fraction: 0.5 },
  );
  t.match(model.asked[1]?.messages.slice(-2), [
    { role: 'tool', tool_call_id: 'call_000000000000000000000002', content: 'slow result' },
    { role: 'tool', tool_call_id: 'call_000000000000000000000003', content: 'quick result' },
  ]);
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
  t.strictSame(seen, [`${turnId}/0`, `${turnId}/1`, `${turnId}/2`, `${turnId}/3`]);
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
  const results = events
    .flatMap((event) => (event.type === 'tool-result' ? [event] : []))
    .sort((a, b) => (a.id < b.id ? -1 : 1)) // ids are counted
    .map(({ isError, content }) => `${isError ? 'error' : 'ok'}: ${content}`);
  t.match(results, [
    /^error: The arguments are not a valid JSON object: \{"n":/,
    /^error: The arguments are not a valid JSON object: \[1\]/,
    /^error: The arguments do not match the tool's schema: "n" must be a number, not /,
    'ok: fine',
    'error: The tool failed: no such city',
    'error: The tool failed: just a string',
    'error: The tool failed: no reason given',
    /^error: The tool returned neither text nor content parts/,
    /^error: There is no tool "absent"\. Available tools: broken, late/,
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
