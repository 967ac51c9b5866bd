import { setImmediate } from 'node:timers/promises';
import type { AgentEvent, Interceptor, Principal } from '@plugboard/kernel';
import { OPEN, TurnError, VersionConflict } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { channels } from '../src/engine/diagnostics/channels.js';
import {
  answerWith,
  callTools,
  collect,
  endOf,
  request,
  ScriptedModel,
  singleTool,
  startRuntime,
  storeWith,
  textOfEvents,
  user,
} from './harness.js';

const acme: Principal = { project: 'acme', token: 'ci', scopes: ['chat'] };

t.test('directory', async (t) => {
  const { runtime } = await startRuntime({
    agents: {
      helper: { model: 'fast' },
      billing: { model: 'fast', project: 'acme', description: 'Sends bills' },
      closed: { model: 'fast', project: 'globex' },
    },
    settings: { defaultAgent: 'helper', projects: { acme: { defaultAgent: 'billing' }, globex: {} } },
    models: { fast: new ScriptedModel([]), helper: new ScriptedModel([]) },
  });
  const seen = (name: string, principal: Principal = OPEN) => {
    const resolution = runtime.resolve(name, principal);
    return resolution.kind === 'target' ? `${resolution.target.kind} ${resolution.target.name}` : resolution.kind;
  };
  t.equal(seen('helper'), 'agent helper', 'C-065 an agent wins over a model of its name');
  t.equal(seen('fast'), 'model fast', 'C-066');
  t.equal(seen('fast', acme), 'agent billing', 'C-067 a raw model is a name like any unknown one for a project’s token');
  t.equal(seen('fast', { project: 'globex', scopes: [] }), 'unknown', 'C-067 no target without a default agent');
  t.equal(seen('no-such'), 'agent helper', 'C-068');
  t.equal(seen('no-such', { project: 'globex', scopes: [] }), 'unknown', 'C-069');
  t.equal(seen('closed', acme), 'forbidden', 'C-070');
  t.equal(seen('closed'), 'agent closed', 'the default project reaches every agent');
  t.equal(seen('billing', { ...acme, agents: [] }), 'forbidden', 'an agent outside a token’s list');
  t.equal(seen('no-such', { ...acme, agents: [] }), 'unknown', 'the default agent is not used either');
  t.equal(seen('fast', { ...OPEN, agents: ['helper'] }), 'agent helper', 'a token with a list reaches no raw model');
  t.strictSame(runtime.list(acme), [{ name: 'billing', kind: 'agent', description: 'Sends bills' }]);
  t.strictSame(
    runtime.list(OPEN).map(({ name, kind }) => `${kind} ${name}`),
    ['agent helper', 'agent billing', 'agent closed', 'model fast'],
  );
});

t.test('C-079 the fingerprint changes with the agent and with nothing else', async (t) => {
  const one = { models: { fast: new ScriptedModel([]) }, agents: { assistant: { model: 'fast', system: 'a' } } };
  const print = async (app: Parameters<typeof startRuntime>[0]) => (await startRuntime(app)).target().fingerprint;
  t.match(await print(one), /^[0-9a-f]{12}$/);
  t.equal(await print(one), await print({ ...one, settings: { defaultAgent: 'assistant' } }));
  t.not(await print(one), await print({ ...one, agents: { assistant: { model: 'fast', system: 'b' } } }));
});

t.test('ready needs an agent, a model, a store that works and a server that is not stopping', async (t) => {
  const models = { fast: new ScriptedModel([]) };
  t.equal(await (await startRuntime({ models })).runtime.ready(), true);
  t.equal(await (await startRuntime({ agents: {}, models })).runtime.ready(), false);
  t.equal(await (await startRuntime({ models: {} })).runtime.ready(), false);
  const stopping = await startRuntime({ models });
  stopping.host.phase = 'stopping';
  t.equal(await stopping.runtime.ready(), false);
  t.match(await collect(stopping.runtime.run(request(stopping.target()))), [
    { type: 'failed', failure: { code: 'draining', retryAfter: 1 } },
  ]);
});

t.test('sessions', async (t) => {
  const echo = () =>
    new ScriptedModel(({ messages }) =>
      answerWith(messages.map(({ role, content }) => `${role[0]}:${typeof content === 'string' ? content : ''}`).join(' ')),
    );

  t.test('C-120 C-121 a key keeps the conversation, and without one nothing is stored', async (t) => {
    const { runtime, target } = await startRuntime({ models: { fast: echo() } });
    const say = async (text: string, session?: string) =>
      textOfEvents(
        await collect(
          runtime.run(
            request(target(), { session: session === undefined ? undefined : { key: session }, messages: [user(text)] }),
          ),
        ),
      );
    t.equal(await say('one', 'ann'), 'u:one');
    t.equal(await say('two', 'ann'), 'u:one a:u:one u:two');
    t.equal(await say('three', 'bob'), 'u:three');
    t.equal(await say('four'), 'u:four');
    t.equal(await say('five'), 'u:five');
  });

  t.test('C-127 C-128 the same key of another agent or project names another session', async (t) => {
    const { runtime, target } = await startRuntime({
      agents: { assistant: { model: 'fast' }, other: { model: 'fast', project: 'acme' } },
      settings: { projects: { acme: {} } },
      models: { fast: echo() },
      interceptors: [
        (turn, next) => {
          t.equal(turn.session, 'api:ann');
          return next(turn);
        },
      ],
    });
    const say = async (name: string, principal: Principal) =>
      textOfEvents(
        await collect(
          runtime.run(request(target(name, principal), { principal, session: { key: 'ann' }, messages: [user('hi')] })),
        ),
      );
    t.equal(await say('assistant', OPEN), 'u:hi');
    t.equal(await say('other', OPEN), 'u:hi');
    t.equal(await say('other', acme), 'u:hi');
    t.equal(await say('fast', OPEN), 'u:hi', 'a raw model is stateful under its own name');
    t.equal(await say('other', acme), 'u:hi a:u:hi u:hi');
  });

  t.test('C-129 a body with the whole conversation adds only the messages after the last assistant message', async (t) => {
    const { runtime, target, store } = await startRuntime({ models: { fast: echo() } });
    await collect(runtime.run(request(target(), { session: { key: 's' }, messages: [user('a')] })));
    await collect(
      runtime.run(
        request(target(), {
          session: { key: 's' },
          messages: [user('a'), { role: 'assistant', content: 'whatever' }, user('b')],
        }),
      ),
    );
    const { version, messages } = await store.load({ project: 'default', agent: 'assistant', key: 's' });
    t.equal(version, 2);
    t.strictSame(messages, [
      user('a'),
      { role: 'assistant', content: 'u:a' },
      user('b'),
      { role: 'assistant', content: 'u:a a:u:a u:b' },
    ]);
  });

  t.test('C-130 turns of one session run in order of arrival, those of other sessions concurrently', async (t) => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const model = new ScriptedModel((_, call) => [
      ...(gates[call - 1] ? [gates[call - 1]?.promise as Promise<void>] : []),
      ...answerWith(`answer ${call}`),
    ]);
    const { runtime, target } = await startRuntime({ models: { fast: model } });
    const order: string[] = [];
    const send = async (text: string, session: string) => {
      const answer = textOfEvents(
        await collect(
          runtime.run(
            request(target(), { session: session === undefined ? undefined : { key: session }, messages: [user(text)] }),
          ),
        ),
      );
      order.push(`${session} ${text}: ${answer}`);
    };
    const first = send('one', 'ann');
    const second = send('two', 'ann');
    const third = send('three', 'ann');
    const other = send('one', 'bob');
    gates[1]?.resolve();
    await other;
    t.equal(model.asked.length, 2, 'ann’s second turn has not begun');
    gates[0]?.resolve();
    await Promise.all([first, second, third]);
    t.strictSame(order, ['bob one: answer 2', 'ann one: answer 1', 'ann two: answer 3', 'ann three: answer 4']);
    t.equal(model.asked[3]?.messages.length, 5);
  });

  t.test('C-131 a failed turn leaves the session unchanged', async (t) => {
    const model = new ScriptedModel([[new Error('boom')], answerWith('fine')]);
    const { runtime, target, store } = await startRuntime({ models: { fast: model } });
    const say = () => collect(runtime.run(request(target(), { session: { key: 's' }, messages: [user('x')] })));
    t.match(endOf(await say()), { type: 'failed', failure: { code: 'crashed' } });
    t.equal((await store.load({ project: 'default', agent: 'assistant', key: 's' })).version, 0);
    t.match(endOf(await say()), { type: 'finished' });
    t.strictSame(model.asked[1]?.messages, [user('x')]);
  });

  t.test('the end of a turn is sent after it is stored, and never if it is not', async (t) => {
    const commit = Promise.withResolvers<void>();
    const began = Promise.withResolvers<void>();
    const slow = await startRuntime({
      models: { fast: new ScriptedModel([answerWith('hi')]) },
      store: storeWith({
        commit: () => {
          began.resolve();
          return commit.promise;
        },
      }),
    });
    const events: AgentEvent[] = [];
    const reading = (async () => {
      for await (const batch of slow.runtime.run(request(slow.target(), { session: { key: 's' } }))) events.push(...batch);
    })();
    await began.promise;
    t.equal(events.at(-1)?.type, 'usage');
    commit.resolve();
    await reading;
    t.equal(events.at(-1)?.type, 'finished');

    const lost = await startRuntime({
      models: { fast: new ScriptedModel([answerWith('hi')]) },
      store: storeWith({ commit: () => Promise.reject(new VersionConflict(3, 4)) }),
    });
    const failed = await collect(lost.runtime.run(request(lost.target(), { session: { key: 's' } })));
    t.match(endOf(failed), {
      type: 'failed',
      failure: { code: 'session_busy', message: /^Another request changed the session .* nothing of this one was kept/ },
    });
    t.match(lost.lines, [{ level: 'debug', msg: 'a turn failed' }], 'a lost race is no failure of the store');
  });

  t.test('a full queue and too long a wait are refused as busy', async (t) => {
    const clock = new ManualClock();
    const gate = Promise.withResolvers<void>();
    const { runtime, target } = await startRuntime({
      settings: { limits: { queuedPerSession: 1 } },
      models: { fast: new ScriptedModel(() => [gate.promise, ...answerWith('x')]) },
      clock,
    });
    const send = () => collect(runtime.run(request(target(), { session: { key: 's' } })));
    const first = send();
    const second = send();
    t.match(await send(), [{ type: 'failed', failure: { code: 'session_busy', retryAfter: 1 } }]);
    clock.advance(60_000);
    t.match(await second, [{ type: 'failed', failure: { code: 'session_busy' } }]);
    gate.resolve();
    t.match(endOf(await first), { type: 'finished' });
    t.match(endOf(await send()), { type: 'finished' }, 'the session is free again');
  });
});

t.test('the process limits running and waiting turns and refuses the rest', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { runtime, target } = await startRuntime({
    settings: { limits: { runningTurns: 1, queuedTurns: 1 } },
    models: { fast: new ScriptedModel(() => [gate.promise, ...answerWith('x')]) },
  });
  const leave = new AbortController();
  const first = collect(runtime.run(request(target())));
  const waiting = collect(runtime.run(request(target(), { signal: leave.signal })));
  await setImmediate();
  t.match(await collect(runtime.run(request(target()))), [{ type: 'failed', failure: { code: 'overloaded', retryAfter: 1 } }]);
  leave.abort();
  t.match(await waiting, [{ type: 'failed', failure: { code: 'abandoned' } }], 'a waiting turn ends with its caller');
  const next = collect(runtime.run(request(target())));
  gate.resolve();
  t.match(endOf(await first), { type: 'finished' });
  t.match(endOf(await next), { type: 'finished' });
});

t.test('C-167 a turn that exceeds the agent’s time limit fails, and its model call is aborted', async (t) => {
  const clock = new ManualClock();
  const model = new ScriptedModel([[{ type: 'text', text: 'Hm' }, new Promise(() => {})]]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', timeout: '3s' } },
    models: { fast: model },
    clock,
  });
  const events: AgentEvent[] = [];
  for await (const batch of runtime.run(request(target()))) {
    events.push(...batch);
    if (batch.some(({ type }) => type === 'text')) clock.advance(3000);
  }
  t.match(endOf(events), { failure: { code: 'timed_out', message: 'The agent did not finish within 3 s.', toolsRan: false } });
  t.ok(model.signals[0]?.aborted);
});

t.test('C-010 R-020 R-022 a disconnect aborts the model and the tools at once, and no further model is called', async (t) => {
  const begun = Promise.withResolvers<AbortSignal>();
  const hang = singleTool((_, { signal }) => {
    begun.resolve(signal);
    return new Promise(() => {});
  });
  const model = new ScriptedModel([callTools(['hang', {}])]);
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['hang'] } },
    models: { fast: model },
    tools: { hang },
  });
  const caller = new AbortController();
  const turn = collect(runtime.run(request(target(), { signal: caller.signal })));
  const signal = await begun.promise;
  caller.abort();
  t.ok(signal.aborted);
  t.match(endOf(await turn), { failure: { code: 'abandoned', toolsRan: true } });
  t.equal(model.asked.length, 1);

  const gone = new AbortController();
  gone.abort(new TurnError('stopped', 'The server stops.'));
  t.match(await collect(runtime.run(request(target(), { signal: gone.signal }))), [
    { failure: { code: 'stopped', message: 'The server stops.' } },
  ]);
});

t.test('a reader that leaves ends the turn, and one that stops reading pauses the model', async (t) => {
  let pulled = 0;
  const left = Promise.withResolvers<void>();
  const model = new ScriptedModel([]);
  model.stream = async function* (_, signal) {
    signal.addEventListener('abort', () => left.resolve());
    for (; !signal.aborted; pulled++) yield [{ type: 'text', text: 'x'.repeat(8_192) }];
    throw signal.reason;
  };
  const { runtime, target } = await startRuntime({ models: { fast: model } });
  const reader = runtime.run(request(target()))[Symbol.asyncIterator]();
  await reader.next();
  for (let turns = 0; turns < 100; turns++) await setImmediate();
  t.ok(pulled < 30, `${pulled} batches wait`);
  await reader.return?.();
  await left.promise;
});

t.test('a stopping server ends running turns with a reason and waits for them', async (t) => {
  const models = { fast: new ScriptedModel([[new Promise(() => {})]]) };
  const clock = new ManualClock();
  const { runtime, target } = await startRuntime({ models, clock });
  const turn = collect(runtime.run(request(target())));
  await setImmediate();
  const stopped = t.rejects(runtime.stop(new AbortController().signal), /1 turn was still running/);
  clock.advance(30_000);
  await stopped;
  t.match(endOf(await turn), { failure: { code: 'stopped', message: 'The server stopped before the agent finished.' } });
});

t.test('interceptors are nested around the turn, in file order from the outside in', async (t) => {
  const shout: Interceptor = async function* (turn, next) {
    for await (const batch of next({ ...turn, messages: [...turn.messages, user('!')] })) {
      yield batch.map((event): AgentEvent => (event.type === 'text' ? { type: 'text', text: event.text.toUpperCase() } : event));
    }
  };
  const wrap: Interceptor = async function* (turn, next) {
    for await (const batch of next(turn))
      yield batch.map((event) => (event.type === 'text' ? { type: 'text', text: `<${event.text}>` } : event));
  };
  const model = new ScriptedModel([answerWith('quiet')]);
  const { runtime, target, store } = await startRuntime({ models: { fast: model }, interceptors: [wrap, shout] });
  t.equal(textOfEvents(await collect(runtime.run(request(target(), { session: { key: 's' } })))), '<QUIET>');
  t.equal(model.asked[0]?.messages.length, 2);
  const { messages } = await store.load({ project: 'default', agent: 'assistant', key: 's' });
  t.strictSame(messages.at(-1), { role: 'assistant', content: '<QUIET>' }, 'what was shown is what is kept');
});

t.test('an interceptor that throws or omits the end fails the turn without details for the caller', async (t) => {
  const throws: Interceptor = () => {
    throw new Error('secret detail');
  };
  const swallows: Interceptor = async function* (turn, next) {
    for await (const batch of next(turn)) yield batch.filter(({ type }) => type !== 'finished');
  };
  for (const interceptor of [throws, swallows]) {
    const { runtime, target, lines } = await startRuntime({
      models: { fast: new ScriptedModel([answerWith('x')]) },
      interceptors: [interceptor],
    });
    const end = endOf(await collect(runtime.run(request(target()))));
    t.match(end, {
      type: 'failed',
      failure: { code: 'crashed', message: 'The agent failed because of an internal error; see the server log for details.' },
    });
    t.match(lines.at(-1), { level: 'error', msg: 'a turn crashed' });
  }
});

t.test(
  'turn, step, tool and store are published on diagnostics channels, with headers that subscribers may extend',
  async (t) => {
    const heard: string[] = [];
    const listen = (name: keyof typeof channels) => {
      const handlers = {
        start: (context: object) => {
          heard.push(name === 'store' ? `store ${(context as { operation: string }).operation}` : `${name} start`);
          if (name === 'step') (context as { headers: Record<string, string> }).headers.traceparent = '00-1';
        },
        asyncEnd: (context: object) => heard.push(`${name} end${'error' in context ? ' failed' : ''}`),
        end: () => {},
        asyncStart: () => {},
        error: () => {},
      };
      channels[name].subscribe(handlers);
      t.teardown(() => channels[name].unsubscribe(handlers));
    };
    for (const name of ['turn', 'step', 'tool', 'store'] as const) listen(name);
    const model = new ScriptedModel([callTools(['own', {}]), [new Error('x')]]);
    const { runtime, target } = await startRuntime({
      agents: { assistant: { model: 'fast', tools: ['own'] } },
      models: { fast: model },
      tools: { own: singleTool(() => '') },
    });
    await collect(runtime.run(request(target(), { session: { key: 's' } })));
    t.strictSame(heard, [
      'turn start',
      'store info',
      'store end',
      'store load',
      'store end',
      'store begin',
      'store end',
      'step start',
      'step end',
      'tool start',
      'tool end',
      'step start',
      'step end failed',
      'store abandon',
      'store end',
      'turn end',
    ]);
    t.strictSame(model.asked[0]?.headers, { traceparent: '00-1' });
  },
);

t.test('a target that did not come from resolve is a TypeError', async (t) => {
  const { runtime, target } = await startRuntime({ models: { fast: new ScriptedModel([]) } });
  t.match(endOf(await collect(runtime.run(request({ ...target() })))), { failure: { code: 'crashed' } });
});
