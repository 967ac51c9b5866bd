import { setImmediate } from 'node:timers/promises';
import { ModelError, type ModelEvent } from '@plugboard/kernel';
import { type ModelCall, type ModelInterceptor, TurnError } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import {
  answerWith,
  callTools,
  collect,
  END,
  endOf,
  type ModelStep,
  request,
  ScriptedModel,
  senderFor,
  singleTool,
  startRuntime,
  type TestRuntimeOptions,
  textOfEvents,
  user,
} from '../../harness.js';

const again = new ModelError('it answered 503.', { retryable: true });
const spent = () => new TurnError('insufficient_quota', 'The budget is spent.', { retryAfter: 60 });

/** Keeps what it sees of each call. */
function watching(): { readonly seen: ModelCall[]; readonly watch: ModelInterceptor } {
  const seen: ModelCall[] = [];
  return {
    seen,
    watch(call, next) {
      seen.push(call);
      return next(call);
    },
  };
}

/** Refuses requests. @param from the step, counted from 1 over all turns, with which it begins. */
const refusing = (error: () => Error, from = 1): ModelInterceptor => {
  let steps = 0;
  return (call, next) => {
    if (++steps >= from) throw error();
    return next(call);
  };
};

/** An agent on the scripted model `fast`, with a tool, and these interceptors in their order. */
async function appOf(
  script: readonly (readonly ModelStep[])[],
  modelInterceptors: Record<string, ModelInterceptor>,
  more: Partial<TestRuntimeOptions> = {},
) {
  const model = new ScriptedModel(script);
  const app = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['look'] } },
    models: { fast: model },
    tools: { look: singleTool(() => 'found') },
    modelInterceptors,
    ...more,
  });
  const ask = () => collect(app.runtime.run(request(app.target())));
  return { ...app, model, ask };
}

t.test('an interceptor sees the request of each step, and who it is for', async (t) => {
  const { seen, watch } = watching();
  const app = await appOf([callTools(['look', {}]), answerWith('Found.')], { watch });
  const events = await app.ask();
  t.equal(textOfEvents(events), 'Found.');
  const [started] = events;
  const turnId = started?.type === 'started' ? started.turnId : '';
  const same = { turnId, agent: 'assistant', session: undefined, attempt: 1, connection: 'fast', model: 'scripted' };
  t.match(seen, [
    { ...same, step: 1 },
    { ...same, step: 2 },
  ]);
  t.strictSame(
    seen.map((call) => call.request),
    app.model.asked,
  );
  t.equal(seen[0]?.principal.project, 'default');
});

t.test('an interceptor sees retries and fallbacks, numbered within their step', async (t) => {
  const { seen, watch } = watching();
  const clock = new ManualClock();
  const app = await appOf(
    [],
    { watch },
    {
      agents: { assistant: { model: ['a', 'b'] } },
      models: { a: new ScriptedModel(() => [again]), b: new ScriptedModel([answerWith('from b')]) },
      tools: {},
      clock,
    },
  );
  const turn = app.ask();
  while (seen.length < 4) {
    await setImmediate();
    if (clock.pending > 1) clock.advance(50);
  }
  t.equal(textOfEvents(await turn), 'from b');
  t.strictSame(
    seen.map(({ step, attempt, connection }) => [step, attempt, connection]),
    [
      [1, 1, 'a'],
      [1, 2, 'a'],
      [1, 3, 'a'],
      [1, 4, 'b'],
    ],
  );
});

t.test('interceptors nest in file order; headers and a copied request reach the model, other changes do not', async (t) => {
  const order: string[] = [];
  const { seen, watch } = watching();
  const app = await appOf([answerWith('Hi')], {
    outer: (call, next) => {
      order.push('outer');
      call.request.headers.traceparent = 'abc';
      const changed = { ...call.request, messages: [user('Changed')] };
      return next({ ...call, agent: 'somebody else', step: 7, request: changed });
    },
    inner: (call, next) => {
      order.push('inner');
      return next(call);
    },
    watch,
  });
  await app.ask();
  t.strictSame(order, ['outer', 'inner']);
  t.match(app.model.asked, [{ messages: [user('Changed')], headers: { traceparent: 'abc' } }]);
  t.match(seen, [{ agent: 'assistant', step: 1 }]);
});

t.test('what next returned may be returned as it is: nothing is wrapped around it', async (t) => {
  let inner: unknown;
  let same: boolean | undefined;
  const app = await appOf([answerWith('Hi')], {
    outer: (call, next) => {
      const answer = next(call);
      same = answer === inner;
      return answer;
    },
    inner: (call, next) => {
      const answer = next(call);
      inner = answer;
      return answer;
    },
  });
  t.equal(textOfEvents(await app.ask()), 'Hi');
  t.equal(same, true);
});

t.test('an interceptor may answer instead of the model', async (t) => {
  const app = await appOf([], {
    async *cache() {
      yield [{ type: 'text', text: 'From memory.' }, END];
    },
  });
  const events = await app.ask();
  t.equal(textOfEvents(events), 'From memory.');
  t.match(endOf(events), { type: 'finished', reason: 'stop' });
  t.equal(app.model.asked.length, 0);
});

t.test('a mistake of an interceptor fails the turn, and the log names its entry', async (t) => {
  const mistakes: Record<string, [ModelInterceptor, RegExp]> = {
    'next twice': [(call, next) => [next(call), next(call)][1] as never, /^bad: next\(call\) was called twice/],
    'next without a call': [(_, next) => (next as () => never)(), /^bad: next\(\) needs the call/],
    'a promise': [(async (call: ModelCall, next: (call: ModelCall) => unknown) => next(call)) as never, /^bad: .* a Promise/],
    'a rejected promise': [(() => Promise.reject(new Error('late'))) as never, /^bad: .* a Promise/],
    nothing: [(() => undefined) as never, /^bad: the model interceptor returned a value of type undefined/],
    'an event that is not in a batch': [
      async function* () {
        yield END as never;
      },
      /arrays of events; write yield \[event\]/,
    ],
    'an error before the request': [
      () => {
        throw new Error('a defect');
      },
      /^a defect$/,
    ],
    'an error in the answer': [
      async function* (call, next) {
        for await (const batch of next(call)) {
          yield batch;
          throw new Error('a defect');
        }
      },
      /^a defect$/,
    ],
  };
  for (const [mistake, [bad, message]] of Object.entries(mistakes)) {
    const app = await appOf([answerWith('Hi')], { bad });
    t.match(endOf(await app.ask()), { type: 'failed', failure: { code: 'crashed' } }, mistake);
    t.match(app.lines, [{ level: 'error', msg: 'a turn crashed', err: { message } }], mistake);
    t.ok(app.model.asked.length <= 1, `${mistake}: nothing is tried again`);
  }
});

t.test('a ModelError of an interceptor counts as the connection’s: the next connection is asked', async (t) => {
  const models = { a: new ScriptedModel([answerWith('a')]), b: new ScriptedModel([answerWith('b')]) };
  const app = await appOf(
    [],
    {
      async *refuse(call, next) {
        if (call.connection === 'a') throw new ModelError('not that one.', { retryable: false });
        yield* next(call);
      },
    },
    { agents: { assistant: { model: ['a', 'b'] } }, models, tools: {} },
  );
  t.equal(textOfEvents(await app.ask()), 'b');
  t.equal(models.a.asked.length, 0);
  t.match(app.lines, [{ msg: 'a model connection failed', connection: 'a' }]);
});

t.test('a TurnError sends nothing and ends the turn, at each step', async (t) => {
  const denied = () => new TurnError('forbidden', 'Not that.', { retryAfter: 5 });
  for (const from of [1, 2]) {
    const script = [callTools(['look', {}]), answerWith('Found.')];
    const app = await appOf(script, { refuse: refusing(denied, from) });
    const failure = { code: 'forbidden', message: 'Not that.', retryAfter: 5, toolsRan: from > 1 };
    t.match(endOf(await app.ask()), { type: 'failed', failure });
    t.equal(app.model.asked.length, from - 1);
  }
});

t.test('insufficient_quota fails a turn that has not called a model', async (t) => {
  const app = await appOf([answerWith('Hi')], { refuse: refusing(spent) });
  const failure = { code: 'insufficient_quota', message: 'The budget is spent.', retryAfter: 60, toolsRan: false };
  t.match(endOf(await app.ask()), { type: 'failed', failure });
  t.equal(app.model.asked.length, 0);
});

t.test('insufficient_quota after the first step ends the turn with what it has, by the limit budget', async (t) => {
  for (const said of [[], [{ type: 'text', text: 'Let me see.' } as const]]) {
    const app = await appOf([[...said, ...callTools(['look', {}])]], { refuse: refusing(spent, 2) });
    const events = await app.ask();
    const usage = { promptTokens: 10, completionTokens: 3 };
    t.match(endOf(events), { type: 'finished', reason: 'length', limit: 'budget', usage });
    const text = said.length > 0 ? 'Let me see.' : 'The agent reached its budget before it finished.';
    t.equal(textOfEvents(events), text);
    t.match(events.at(said.length > 0 ? -2 : -3), { type: 'tool-result', content: 'found' });
  }
});

t.test('a budget that ends during an answer keeps what was said, and drops the call that was begun', async (t) => {
  const half: ModelEvent = { type: 'text', text: 'So far' };
  const app = await appOf([callTools(['look', {}]), [half, ...answerWith('.')]], {
    async *cut(call, next) {
      for await (const batch of next(call)) {
        yield batch;
        if (batch[0] === half) throw spent();
      }
    },
  });
  const events = await app.ask();
  t.equal(textOfEvents(events), 'So far');
  t.match(endOf(events), { type: 'finished', reason: 'length', limit: 'budget' });
});

t.test('a session that its budget ended goes on when there is budget again', async (t) => {
  let isSpent = true;
  const app = await appOf([callTools(['look', {}]), answerWith('Yes.')], {
    refuse: (call, next) => {
      if (isSpent && call.step > 1) throw spent();
      return next(call);
    },
  });
  const send = senderFor(app);
  t.match(endOf(await send('Look')), { limit: 'budget' });
  isSpent = false;
  t.equal(textOfEvents(await send('Did you?')), 'Yes.');
  t.match(app.model.asked[1]?.messages, [
    user('Look'),
    { role: 'assistant', content: null, tool_calls: [{}] },
    { role: 'tool', content: 'found' },
    { role: 'assistant', content: 'The agent reached its budget before it finished.' },
    user('Did you?'),
  ]);
});

t.test('the iterator of an interceptor is returned when the turn ends early', async (t) => {
  const ended = Promise.withResolvers<void>();
  const app = await appOf([[{ type: 'text', text: 'One' }, new Promise(() => {})]], {
    async *watch(call, next) {
      try {
        yield* next(call);
      } finally {
        ended.resolve();
      }
    },
  });
  for await (const batch of app.runtime.run(request(app.target()))) {
    if (batch.some(({ type }) => type === 'text')) break;
  }
  await ended.promise;
  t.equal(app.model.signals[0]?.aborted, true);
});

t.test('turns that run at the same time have their own calls', async (t) => {
  const { seen, watch } = watching();
  const app = await appOf([], { watch }, { models: { fast: new ScriptedModel(() => answerWith('Hi')) } });
  await Promise.all([app.ask(), app.ask(), app.ask()]);
  t.equal(new Set(seen.map(({ turnId }) => turnId)).size, 3);
});
