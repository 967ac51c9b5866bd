import { type Message, ModelError, type ModelRequest, type SessionStore } from '@plugboard/kernel';
import { type ModelCall, type ModelInterceptor, TurnError } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { channels } from '../../../src/engine/diagnostics/channels.js';
import { tokensOf } from '../../../src/engine/messages/message-size.js';
import {
  accountOf,
  answerWith,
  call,
  callTools,
  collect,
  END,
  endOf,
  type ModelStep,
  request,
  ScriptedModel,
  senderFor,
  startRuntime,
  storeWith,
  textOfEvents,
  usage,
  user,
} from '../../harness.js';

const ID = { project: 'default', agent: 'assistant', key: 's' };
const TWO_TURNS = { policy: 'summarize', maxMessages: 4 };
const assistant = (content: string): Message => ({ role: 'assistant', content });
const size = (messages: readonly Message[]) => messages.reduce((sum, message) => sum + tokensOf(message), 0);
const isForSummary = ({ messages }: ModelRequest) => /^You keep the memory/.test(String(messages[0]?.content));
const behind = (summary: string, text: string) =>
  user(`<summary>\nWhat was said before in this conversation, in short:\n\n${summary}\n</summary>\n\n${text}`);

interface Scene {
  readonly history?: object | string;
  readonly agent?: object;
  /** What the model says when it is asked for its nth summary. */
  readonly summary?: (n: number, request: ModelRequest) => readonly ModelStep[];
  readonly answer?: (text: string) => readonly ModelStep[];
  readonly store?: SessionStore;
  readonly contextWindow?: number;
  readonly modelInterceptors?: Record<string, ModelInterceptor>;
}

/** An agent that answers `x` with `re: x`, and summaries as scripted. */
async function sceneOf({ history = TWO_TURNS, agent, summary, answer, store, contextWindow, modelInterceptors }: Scene) {
  let summaries = 0;
  const model = new ScriptedModel((asked) => {
    if (isForSummary(asked)) return summary?.(++summaries, asked) ?? answerWith(`summary ${++summaries}`);
    const said = String(asked.messages.findLast(({ role }) => role === 'user')?.content).replace(
      /^<summary>.*<\/summary>\n\n/s,
      '',
    );
    return answer?.(said) ?? answerWith(`re: ${said}`);
  });
  Object.assign(model, { contextWindow: contextWindow ?? 128_000 });
  const clock = new ManualClock();
  const app = await startRuntime({
    agents: { assistant: { model: 'fast', history, ...agent } },
    models: { fast: model },
    clock,
    ...(store && { store }),
    ...(modelInterceptors && { modelInterceptors }),
  });
  const warnings = () => app.lines.filter(({ level }) => level === 'warn');
  const asked = () => model.asked.filter((one) => !isForSummary(one)).map(({ messages }) => messages);
  const forSummaries = () => model.asked.filter(isForSummary);
  return { ...app, clock, model, warnings, asked, forSummaries, send: senderFor(app) };
}

t.test('the agent’s model summarizes the oldest turns before the turn, and they stay stored', async (t) => {
  const order: string[] = [];
  const store = storeWith({});
  for (const name of ['begin', 'putSummary', 'commit'] as const) {
    const method = store[name].bind(store) as (...args: unknown[]) => Promise<void>;
    Object.assign(store, {
      [name]: (...args: unknown[]) => {
        order.push(name);
        return method(...args);
      },
    });
  }
  const scene = await sceneOf({ agent: { system: 'Be brief.', params: { temperature: 0.5, stop: ['\n'] } }, store });
  await scene.send('one');
  await scene.send('two');
  t.equal(scene.forSummaries().length, 0);
  order.length = 0;
  const events = await scene.send('three');

  t.strictSame(order, ['begin', 'putSummary', 'commit']);
  t.match(scene.forSummaries(), [
    {
      messages: [
        { role: 'system', content: /at most 1024 words\. Answer with the summary alone\.$/ },
        {
          role: 'user',
          content: [
            'The messages, one JSON object per line:',
            '{"role":"user","content":"one"}',
            '{"role":"assistant","content":"re: one"}',
          ].join('\n'),
        },
      ],
      tools: [],
      params: {},
    },
  ]);
  t.equal(scene.forSummaries()[0]?.messages.length, 2);
  t.strictSame(scene.asked()[2], [
    { role: 'system', content: 'Be brief.' },
    behind('summary 1', 'two'),
    assistant('re: two'),
    user('three'),
  ]);
  t.strictSame(
    events.map(({ type }) => type),
    ['started', 'step', 'text', 'usage', 'finished'],
    'callers do not see the summary call',
  );
  t.match(endOf(events), { reason: 'stop', usage: { promptTokens: 20, completionTokens: 4 } }, 'but its tokens are counted');
  t.match(await store.load(ID), {
    version: 3,
    messages: ['one', 're: one', 'two', 're: two', 'three', 're: three'].map((content) => ({ content })),
    summary: { messages: 2, text: 'summary 1' },
  });
});

t.test('a summary is used while it suffices, also after a reload, and is part of the next one', async (t) => {
  const history = { policy: 'summarize', maxMessages: 8 };
  const first = await sceneOf({ history });
  for (const text of ['1', '2', '3', '4', '5']) await first.send(text);
  t.match(await first.store.load(ID), { summary: { messages: 4 } });

  const scene = await sceneOf({ history, store: first.store, summary: () => answerWith('  all of it \n') });
  await scene.send('6');
  t.equal(scene.forSummaries().length, 0);
  t.strictSame(scene.asked()[0]?.[0], behind('summary 1', '3'));
  scene.clock.advance(16 * 60_000);
  await scene.send('7');
  t.match(scene.forSummaries(), [
    {
      messages: [
        {},
        {
          content: [
            'Your summary of what was said before that:',
            '"summary 1"',
            '',
            'The messages, one JSON object per line:',
            '{"role":"user","content":"3"}',
            '{"role":"assistant","content":"re: 3"}',
            '{"role":"user","content":"4"}',
            '{"role":"assistant","content":"re: 4"}',
          ].join('\n'),
        },
      ],
    },
  ]);
  t.strictSame(scene.asked()[1], [behind('all of it', '5'), assistant('re: 5'), user('6'), assistant('re: 6'), user('7')]);
  t.match((await scene.store.load(ID)).summary, { messages: 8, text: 'all of it' });
});

t.test('R-084 a long session stays within the model’s context window', async (t) => {
  const scene = await sceneOf({
    history: 'summarize',
    contextWindow: 2000,
    agent: { system: 'Be brief.' },
    summary: () => answerWith('s'.repeat(600)),
    answer: () => answerWith('a'.repeat(400)),
  });
  for (let n = 0; n < 40; n++) t.match(endOf(await scene.send(`${n} ${'q'.repeat((n * 97) % 900)}`)), { type: 'finished' });
  for (const { messages } of scene.model.asked) t.ok(size(messages) <= 1500, `${size(messages)} tokens`);
  t.strictSame(scene.warnings(), []);
  t.equal((await scene.store.load(ID)).messages.length, 80);
  const { length } = scene.forSummaries();
  t.ok(length > 5 && length < 20, `${length} summaries`);
});

t.test('without a summary the oldest turns are omitted with one log line, and the turn continues', async (t) => {
  const failures: Record<string, { lines: readonly ModelStep[]; message: RegExp; spent: number; warnings?: number }> = {
    refused: { lines: [new ModelError('it is down.', { retryable: false })], message: /it is down/, spent: 10, warnings: 2 },
    broken: { lines: [new Error('a defect')], message: /a defect/, spent: 10 },
    cut: { lines: [{ type: 'text', text: 'half' }], message: /cut off/, spent: 10 },
    empty: { lines: answerWith(' \n'), message: /empty/, spent: 20 },
    'too long': { lines: answerWith('x'.repeat(17_000)), message: /too long/, spent: 10 },
    stopped: { lines: answerWith('half', 'length'), message: /ended with "length"/, spent: 20 },
    'a call': {
      lines: [call('1', 'f', {}), usage(10, 2), { type: 'end', reason: 'tool_calls' }],
      message: /"tool_calls"/,
      spent: 20,
    },
  };
  for (const [name, { lines, message, spent, warnings = 1 }] of Object.entries(failures)) {
    const scene = await sceneOf({ summary: () => lines });
    await scene.send('one');
    await scene.send('two');
    const end = endOf(await scene.send('three'));
    t.match(end, { type: 'finished', reason: 'stop', usage: { promptTokens: spent } }, name);
    t.equal(scene.asked()[2]?.length, 5, 'all of it, for it just fits');
    t.equal(scene.warnings().length, warnings);
    t.match(scene.warnings().at(-1), { msg: /^could not summarize a session/, agent: 'assistant', err: { message } });
    await scene.send('four');
    t.strictSame(
      scene.asked()[3]?.map(({ content }) => content),
      ['two', 're: two', 'three', 're: three', 'four'],
    );
    t.equal((await scene.store.load(ID)).summary, undefined);
  }
});

t.test('after a failed summary the next four turns run without one', async (t) => {
  const scene = await sceneOf({ summary: () => answerWith('') });
  const askedAfter: number[] = [];
  for (let turn = 1; turn <= 9; turn++) {
    await scene.send(`turn ${turn}`);
    askedAfter.push(scene.forSummaries().length);
  }
  t.strictSame(askedAfter, [0, 0, 1, 1, 1, 1, 1, 2, 2]);
});

t.test('if the next summary fails, the newest turns follow the previous one', async (t) => {
  const scene = await sceneOf({ summary: (n) => (n === 1 ? answerWith('first') : answerWith('')) });
  for (const text of ['1', '2', '3', '4', '5']) await scene.send(text);
  t.strictSame(scene.asked()[4], [behind('first', '3'), ...[assistant('re: 3'), user('4'), assistant('re: 4'), user('5')]]);
});

t.test('a summary that cannot be stored is used while the session is in memory', async (t) => {
  const store = storeWith({ putSummary: () => Promise.reject(new Error('no room')) });
  const scene = await sceneOf({ history: { policy: 'summarize', maxMessages: 8 }, store });
  for (const text of ['1', '2', '3', '4', '5', '6']) t.match(endOf(await scene.send(text)), { type: 'finished' });
  t.equal(scene.forSummaries().length, 1);
  t.strictSame(scene.asked()[5]?.[0], behind('summary 1', '3'));
  t.match(scene.warnings(), [{ msg: /^could not store the summary of a session/ }]);
});

t.test('cancelling a turn ends its summary without a trace', async (t) => {
  const began = Promise.withResolvers<void>();
  const scene = await sceneOf({
    summary: () => {
      began.resolve();
      return [new Promise(() => {})];
    },
  });
  await scene.send('one');
  await scene.send('two');
  const caller = new AbortController();
  const third = scene.send('three', {}, caller.signal);
  await began.promise;
  caller.abort();
  t.match(endOf(await third), { failure: { code: 'abandoned' } });
  t.ok(scene.model.signals.at(-1)?.aborted);
  t.equal((await scene.store.load(ID)).version, 2);
  t.strictSame(scene.warnings(), []);
});

t.test('another policy ignores an existing summary', async (t) => {
  for (const policy of ['truncate', 'error']) {
    const before = await sceneOf({});
    for (const text of ['one', 'two', 'three']) await before.send(text);
    t.match(await before.store.load(ID), { summary: { messages: 2 } });
    const scene = await sceneOf({ history: { policy, maxMessages: 6 }, store: before.store });
    await scene.send('four');
    t.strictSame(
      scene.model.asked[0]?.messages.map(({ content }) => content),
      ['one', 're: one', 'two', 're: two', 'three', 're: three', 'four'],
    );
  }
});

t.test('a turn with pending client tool calls stays whole after a summary', async (t) => {
  const scene = await sceneOf({
    agent: { clientTools: 'passthrough' },
    answer: (text) => (text === 'look' ? callTools(['theirs', {}]) : answerWith(`re: ${text}`)),
  });
  const clientTools = [{ name: 'theirs', description: '', inputSchema: { type: 'object' } }];
  const send = (...messages: Message[]) =>
    collect(scene.runtime.run(request(scene.target(), { clientTools, messages, session: { key: 's' } })));
  await send(user('one'));
  const looked = await send(user('look'));
  t.match(endOf(looked), { reason: 'tool_calls' });
  const id = looked.flatMap((event) => (event.type === 'tool-call' ? [event.id] : []))[0] ?? '';
  await send({ role: 'tool', tool_call_id: id, content: 'seen' });
  t.strictSame(scene.forSummaries().length, 1);
  t.match(scene.asked()[2], [
    behind('summary 1', 'look'),
    { role: 'assistant', tool_calls: [{ id }] },
    { role: 'tool', content: 'seen' },
  ]);
  t.equal(scene.asked()[2]?.length, 3);
});

t.test('a caller’s own system message comes before the summary', async (t) => {
  const scene = await sceneOf({ agent: { system: 'Be brief.' } });
  await scene.send('one');
  await scene.send('two');
  const messages: Message[] = [{ role: 'system', content: 'Be kind.' }, user('three')];
  await collect(scene.runtime.run(request(scene.target(), { messages, session: { key: 's' } })));
  t.match(scene.asked()[2], [{ role: 'system', content: 'Be kind.' }, behind('summary 1', 'two'), {}, user('three')]);
});

t.test('the usage of a summary is reported and does not count against the agent’s limits', async (t) => {
  const scene = await sceneOf({
    agent: { maxTokens: 50, maxSteps: 2, clientTools: 'passthrough' },
    summary: () => [{ type: 'text', text: 'short' }, usage(1000, 10), END],
    answer: (text) => (text === 'three' ? callTools(['theirs', {}]) : answerWith(`re: ${text}`)),
  });
  await scene.send('one');
  await scene.send('two');
  const clientTools = [{ name: 'theirs', description: '', inputSchema: { type: 'object' } }];
  const third = request(scene.target(), { messages: [user('three')], clientTools, session: { key: 's' } });
  t.match(endOf(await collect(scene.runtime.run(third))), {
    reason: 'tool_calls',
    usage: { promptTokens: 1010, completionTokens: 13, cachedTokens: 2 },
  });
});

t.test('a summary is published on a diagnostics channel, and subscribers may add headers to its request', async (t) => {
  const heard: object[] = [];
  const listener = {
    start: (context: object) => Object.assign((context as { headers: object }).headers, { traceparent: '00-1' }),
    asyncEnd: (context: object) => heard.push(context),
    end: () => {},
    asyncStart: () => {},
    error: () => {},
  };
  channels.summary.subscribe(listener);
  t.teardown(() => channels.summary.unsubscribe(listener));
  const scene = await sceneOf({ summary: (n) => (n === 1 ? answerWith('') : answerWith('fine')) });
  for (const text of ['1', '2', '3', '4', '5', '6', '7', '8']) await scene.send(text);
  t.match(heard, [
    { session: ID, connections: ['fast'], error: { message: 'the summary is empty' } },
    { session: ID, connection: 'fast', usage: { promptTokens: 10 } },
  ]);
  t.match(scene.forSummaries()[0]?.headers, { traceparent: '00-1' });
});

t.test('a replayed answer includes the usage of a summary', async (t) => {
  const scene = await sceneOf({});
  await scene.send('one');
  t.equal(textOfEvents(await scene.send('two')), 're: two');
  const key = { project: 'default', route: '/', key: 'k' };
  const claimed = await scene.runtime.claim(key, 'f', accountOf());
  const counted: number[] = [];
  const recorder = {
    add: (events: readonly { type: string; usage?: { promptTokens: number } }[]) => {
      for (const event of events) if (event.type === 'finished') counted.push(event.usage?.promptTokens ?? 0);
    },
    text: () => 'answer',
  };
  if (claimed.kind !== 'new') throw new Error(claimed.kind);
  const third = request(scene.target(), { session: { key: 's' }, idempotency: { claim: claimed.claim, recorder } });
  await collect(scene.runtime.run(third));
  t.strictSame(counted, [20]);
});

t.test('model interceptors see the request for a summary as step 0 of its turn', async (t) => {
  const seen: ModelCall[] = [];
  const scene = await sceneOf({
    modelInterceptors: {
      watch: (call, next) => {
        seen.push(call);
        return next(call);
      },
    },
  });
  for (const text of ['one', 'two', 'three']) await scene.send(text);
  t.match(
    seen.map(({ step, attempt }) => [step, attempt]),
    [
      [1, 1],
      [1, 1],
      [0, 1],
      [1, 1],
    ],
  );
  t.equal(seen[2]?.turnId, seen[3]?.turnId);
  t.match(seen[2], { session: 'api:s', connection: 'fast', request: { messages: [{ role: 'system' }, { role: 'user' }] } });
});

t.test('a model interceptor that refuses a summary ends the turn', async (t) => {
  for (const code of ['insufficient_quota', 'forbidden'] as const) {
    const scene = await sceneOf({
      modelInterceptors: {
        refuse: (call, next) => {
          if (call.step === 0) throw new TurnError(code, 'No.');
          return next(call);
        },
      },
    });
    for (const text of ['one', 'two']) await scene.send(text);
    t.match(endOf(await scene.send('three')), { type: 'failed', failure: { code, message: 'No.' } });
    t.equal(scene.forSummaries().length, 0);
    t.equal(scene.asked().length, 2);
  }
});

t.test('a defect of a model interceptor at a summary leaves the summary out, as any other failure', async (t) => {
  const scene = await sceneOf({
    modelInterceptors: {
      break: (call, next) => {
        if (call.step === 0) throw new Error('a defect');
        return next(call);
      },
    },
  });
  for (const text of ['one', 'two']) await scene.send(text);
  t.equal(textOfEvents(await scene.send('three')), 're: three');
  t.match(scene.warnings(), [{ err: { message: 'a defect' } }]);
});
