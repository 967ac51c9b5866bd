import type { InterceptedCall, ToolInterceptor } from '@plugboard/kernel';
import { TurnError } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { answerWith, callTools, collect, request, ScriptedModel, startRuntime, tool } from '../../harness.js';

/** Runs a turn whose first step calls tools, inside tool interceptors. Returns their results. */
async function callThrough(
  toolInterceptors: Record<string, ToolInterceptor>,
  calls: readonly [name: string, input: unknown][] = [['desk__close', { ticket: 7 }]],
  clock = new ManualClock(),
) {
  const ran: unknown[] = [];
  const tools = [
    tool('close', async (input) => `closed ${JSON.stringify(ran[ran.push(input) - 1])}`, { ticket: { type: 'integer' } }),
    tool('fail', () => {
      ran.push('fail');
      throw new Error('the desk is on fire');
    }),
  ];
  const app = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['desk'] } },
    models: { fast: new ScriptedModel([callTools(...calls), answerWith('Done.')]) },
    tools: { desk: { tools: () => tools } },
    shared: { desk: { timeout: '10s', resultLimit: '1kb' } },
    toolInterceptors,
    clock,
  });
  const events = collect(app.runtime.run(request(app.target(), { session: { key: 'anna' } })));
  const results = async () =>
    (await events).flatMap((event) => (event.type === 'tool-result' ? [{ content: event.content, isError: event.isError }] : []));
  return { ran, results, lines: app.lines, clock };
}

t.test('interceptors run around every call, the first one outermost', async (t) => {
  const log: string[] = [];
  const around =
    (name: string): ToolInterceptor =>
    async (call, next) => {
      log.push(`${name} before ${call.index}`);
      const output = await next(call);
      log.push(`${name} after ${call.index}`);
      return output;
    };
  const { ran, results } = await callThrough({ outer: around('outer'), inner: around('inner') });
  t.strictSame(await results(), [{ content: 'closed {"ticket":7}', isError: false }]);
  t.strictSame(ran, [{ ticket: 7 }]);
  t.strictSame(log, ['outer before 0', 'inner before 0', 'inner after 0', 'outer after 0']);
});

t.test('a call names its entry, tool, effect, arguments, agent, caller, session and turn', async (t) => {
  let seen: InterceptedCall | undefined;
  const { results } = await callThrough({
    spy: (call, next) => {
      seen = call;
      return next(call);
    },
  });
  await results();
  t.match(seen, {
    entry: 'desk',
    tool: 'close',
    effect: 'read',
    input: { ticket: 7 },
    agent: 'assistant',
    principal: { project: 'default' },
    session: 'api:anna',
    turnId: /^turn_/,
    index: 0,
    signal: AbortSignal,
  });
});

t.test('each call of a parallel step is intercepted alone', async (t) => {
  const deny: ToolInterceptor = (call, next) => (call.input.ticket === 2 ? 'not this one' : next(call));
  const calls = [1, 2, 3].map((ticket): [string, unknown] => ['desk__close', { ticket }]);
  const { ran, results } = await callThrough({ deny }, calls);
  t.strictSame((await results()).map(({ content }) => content).sort(), [
    'closed {"ticket":1}',
    'closed {"ticket":3}',
    'not this one',
  ]);
  t.strictSame(ran, [{ ticket: 1 }, { ticket: 3 }]);
});

t.test('an interceptor changes the arguments, which are validated again', async (t) => {
  const change = (ticket: unknown): ToolInterceptor => {
    return (call, next) => next({ ...call, input: { ticket } });
  };
  const changed = await callThrough({ change: change(8) });
  t.strictSame(await changed.results(), [{ content: 'closed {"ticket":8}', isError: false }]);

  const invalid = await callThrough({ change: change('eight') });
  t.match(await invalid.results(), [{ content: /^The tool failed: an internal error/, isError: true }]);
  t.strictSame(invalid.ran, []);
  t.match(
    invalid.lines.find(({ msg }) => msg === 'a tool interceptor failed'),
    {
      entry: 'change',
      tool: 'desk/close',
      err: { message: /other arguments, which are invalid: .*integer/ },
    },
  );
});

t.test('a TurnError refuses the call, and the model receives its message', async (t) => {
  const refuse: ToolInterceptor = () => {
    throw new TurnError('invalid_request', 'Tickets are closed by people.');
  };
  const { ran, results, lines } = await callThrough({ refuse });
  t.strictSame(await results(), [{ content: 'Tickets are closed by people.', isError: true }]);
  t.strictSame(ran, []);
  t.notOk(lines.some(({ msg }) => msg === 'a tool interceptor failed'));
});

t.test('an interceptor that fails, or returns no output, fails the call and not the turn', async (t) => {
  const bad: Record<string, ToolInterceptor> = {
    throws: () => {
      throw new TypeError('undefined is not a function');
    },
    rejects: async () => {
      throw new Error('broken');
    },
    throwsNothing: async () => {
      throw undefined;
    },
    returnsNothing: (() => undefined) as unknown as ToolInterceptor,
    passesNothing: (_, next) => (next as () => Promise<string>)(),
  };
  for (const [name, interceptor] of Object.entries(bad)) {
    const { ran, results, lines } = await callThrough({ outer: (call, next) => next(call), [name]: interceptor });
    t.match(await results(), [{ content: /^The tool failed: an internal error/, isError: true }], name);
    t.strictSame(ran, [], name);
    t.equal(lines.find(({ msg }) => msg === 'a tool interceptor failed')?.entry, name, 'the log names the entry at fault');
  }
});

t.test('a second call of next throws, and the tool runs once', async (t) => {
  const twice: ToolInterceptor = async (call, next) => {
    await next(call);
    return next(call);
  };
  const { ran, results, lines } = await callThrough({ twice });
  t.match(await results(), [{ isError: true }]);
  t.equal(ran.length, 1);
  t.match(
    lines.find(({ msg }) => msg === 'a tool interceptor failed'),
    { err: { message: /called twice/ } },
  );

  const atOnce: ToolInterceptor = async (call, next) =>
    (await Promise.allSettled([next(call), (async () => next(call))()]))[0].status;
  const both = await callThrough({ atOnce });
  t.strictSame(await both.results(), [{ content: 'fulfilled', isError: false }]);
  t.equal(both.ran.length, 1);
});

t.test('an error of the tool passes through, and an interceptor may answer instead', async (t) => {
  const calls: [string, unknown][] = [['desk__fail', {}]];
  const passed = await callThrough({ pass: (call, next) => next(call) }, calls);
  t.strictSame(await passed.results(), [{ content: 'The tool failed: the desk is on fire', isError: true }]);
  const caught = await callThrough({ catch: (call, next) => next(call).catch(() => 'Try again later.') }, calls);
  t.strictSame(await caught.results(), [{ content: 'Try again later.', isError: false }]);
  const ignored = await callThrough(
    {
      ignore: (call, next) => {
        void next(call);
        return 'Started.';
      },
    },
    calls,
  );
  t.strictSame(await ignored.results(), [{ content: 'Started.', isError: false }], 'an error that nobody awaits is harmless');
});

t.test('an interceptor that never answers is stopped at the time limit of the tool', async (t) => {
  let signal: AbortSignal | undefined;
  const { ran, results, clock } = await callThrough({
    hang: (call) => {
      signal = call.signal;
      return new Promise(() => {});
    },
  });
  await t.resolves(async () => {
    while (!signal) await new Promise(setImmediate);
  });
  clock.advance(10_000);
  t.strictSame(await results(), [{ content: 'The tool did not finish within 10 s and was stopped.', isError: true }]);
  t.ok(signal?.aborted);
  t.strictSame(ran, []);
});

t.test('the result limit of the tool holds for an answer of an interceptor', async (t) => {
  const { results } = await callThrough({ long: () => 'x'.repeat(5000) });
  const [result] = await results();
  t.ok(Buffer.byteLength(result?.content ?? '') <= 1024);
  t.match(result?.content, /truncated: 5000 bytes/);
});

t.test('calls that cannot run are not intercepted', async (t) => {
  let calls = 0;
  const count: ToolInterceptor = (call, next) => {
    calls++;
    return next(call);
  };
  const { results } = await callThrough({ count }, [
    ['desk__open', {}],
    ['desk__close', { ticket: 'seven' }],
  ]);
  t.match(await results(), [{ content: /There is no tool/ }, { content: /do not match the tool's schema/ }]);
  t.equal(calls, 0);
});
