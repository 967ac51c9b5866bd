import { setImmediate } from 'node:timers/promises';
import { ModelError } from '@plugboard/kernel';
import { ManualClock, SequentialIds } from '@plugboard/testing';
import t from 'tap';
import { answerWith, collect, endOf, type ModelStep, request, ScriptedModel, startRuntime, textOfEvents } from '../../harness.js';

const again = (retryAfter?: number) => new ModelError('it answered 503.', { retryable: true, retryAfter });
const never = new ModelError('it answered 401.', { retryable: false });

/** Runs a turn, moves the clock past each wait, and returns the waits. */
async function run(models: Record<string, ScriptedModel>, names: string | string[] = 'fast', clock = new ManualClock()) {
  const app = await startRuntime({ agents: { assistant: { model: names } }, models, clock, ids: new SequentialIds([0.5]) });
  const turn = async () => {
    const waits: number[] = [];
    let ended = false;
    const events = collect(app.runtime.run(request(app.target()))).finally(() => {
      ended = true;
    });
    while (!ended) {
      await setImmediate();
      const before = clock.monotonic();
      // The turn's own limit is a timer too; a second one is a wait.
      while (!ended && clock.pending > 1) clock.advance(50);
      if (clock.monotonic() > before) waits.push(clock.monotonic() - before);
    }
    return { events: await events, waits };
  };
  return { ...app, turn };
}

t.test('R-030 R-032 a retryable failure is retried twice, after 0.5 to 1 s and 1 to 2 s', async (t) => {
  const model = new ScriptedModel([[again()], [again()], answerWith('at last')]);
  const { turn } = await run({ fast: model });
  const { events, waits } = await turn();
  t.equal(textOfEvents(events), 'at last');
  t.strictSame(waits, [750, 1500]);

  const broken = new ScriptedModel(() => [again()]);
  const failed = await (await run({ fast: broken })).turn();
  t.equal(broken.asked.length, 3);
  t.match(endOf(failed.events), { failure: { code: 'model_failed', message: 'The model connection failed: it answered 503.' } });
});

t.test('R-031 the wait requested by the model server is respected unless it is too long', async (t) => {
  const short = await (await run({ fast: new ScriptedModel([[again(2)], answerWith('ok')]) })).turn();
  t.strictSame(short.waits, [2500]);
  const model = new ScriptedModel(() => [again(3600)]);
  const long = await (await run({ fast: model })).turn();
  t.strictSame(long.waits, []);
  t.equal(model.asked.length, 1);
  t.equal(endOf(long.events).type, 'failed');
});

t.test('R-032 there is no retry after the first event, for a permanent failure or for a defect', async (t) => {
  const scripts: ModelStep[][] = [[{ type: 'text', text: 'Hal' }, again()], [never], [new Error('defect')], []];
  for (const [index, script] of scripts.entries()) {
    const model = new ScriptedModel(() => script);
    const { events } = await (await run({ fast: model })).turn();
    t.equal(endOf(events).type, 'failed');
    t.equal(model.asked.length, index === 3 ? 3 : 1, index === 3 ? 'an answer that ends before it begins may pass' : '');
  }
});

t.test('R-038 the next connection of a list answers when the attempts of the first have failed', async (t) => {
  const first = new ScriptedModel(() => [again()]);
  const second = new ScriptedModel(() => answerWith('from b'));
  const { turn } = await run({ a: first, b: second }, ['a', 'b']);
  const { events } = await turn();
  t.match(events[1], { type: 'step', connection: 'b' });
  t.equal(textOfEvents(events), 'from b');
  t.equal(first.asked.length, 3);
});

t.test('R-038 a connection that failed three times in a row is skipped for 30 s, unless it is the only one', async (t) => {
  const clock = new ManualClock();
  const first = new ScriptedModel(() => [never]);
  const { turn } = await run({ a: first, b: new ScriptedModel(() => answerWith('b')) }, ['a', 'b'], clock);
  for (let i = 0; i < 5; i++) await turn();
  t.equal(first.asked.length, 3);
  clock.advance(30_000);
  await turn();
  t.equal(first.asked.length, 4);

  const alone = new ScriptedModel(() => [never]);
  const one = await run({ a: alone }, 'a');
  for (let i = 0; i < 5; i++) await one.turn();
  t.equal(alone.asked.length, 5);

  const allBad = { a: new ScriptedModel(() => [never]), b: new ScriptedModel(() => [never]) };
  const both = await run(allBad, ['a', 'b']);
  for (let i = 0; i < 5; i++) await both.turn();
  t.equal(allBad.b.asked.length, 5, 'where all have failed, all are asked');
});

t.test('a disconnect during the wait for a retry ends the turn', async (t) => {
  const caller = new AbortController();
  const model = new ScriptedModel(() => [again()]);
  const { runtime, target } = await startRuntime({ models: { fast: model } });
  const turn = collect(runtime.run(request(target(), { signal: caller.signal })));
  await setImmediate();
  caller.abort();
  t.match(endOf(await turn), { failure: { code: 'abandoned' } });
  t.equal(model.asked.length, 1);
});

t.test('an agent without a running connection fails with that reason', async (t) => {
  const { runtime, target } = await startRuntime({ models: {} });
  t.match(endOf(await collect(runtime.run(request(target())))), {
    failure: { code: 'model_failed', message: 'No model connection of the agent is running.' },
  });
});

t.test('a failed model call is logged once, in one line of under 600 characters, without a stack', async (t) => {
  const refused = new ModelError(`the model server answered with status 500: ${'x'.repeat(5000)}`, {
    retryable: false,
    cause: new Error('socket hang up', { cause: new Error('y'.repeat(5000)) }),
  });
  for (const script of [[refused], [{ type: 'text', text: 'Hel' } as const, refused]]) {
    const app = await startRuntime({ models: { fast: new ScriptedModel([script]) } });
    const events = await collect(app.runtime.run(request(app.target())));
    t.match(endOf(events), { failure: { code: 'model_failed' } });
    const lines = app.lines.filter(({ level }) => level !== 'debug');
    t.match(lines, [
      { level: 'warn', msg: 'a model connection failed', connection: 'fast', request_id: 'req_1', agent: 'assistant' },
    ]);
    t.equal(lines.length, 1);
    t.ok(JSON.stringify(lines[0]).length < 600, JSON.stringify(lines[0]));
    t.notMatch(JSON.stringify(lines[0]), /stack|model-calls\.test/);
  }
});

t.test('C-175 the kind and the wait of a failure reach the caller, those of the last connection', async (t) => {
  const end = async (...errors: readonly ModelError[]) => {
    const models = Object.fromEntries(errors.map((error, index) => [`m${index}`, new ScriptedModel(() => [error])]));
    const { events } = await (await run(models, Object.keys(models))).turn();
    const { failure } = endOf(events) as { failure: object };
    return failure;
  };
  for (const code of ['context_length_exceeded', 'content_filter', 'invalid_request'] as const)
    t.match(await end(new ModelError('no.', { code })), {
      code,
      message: 'The model connection failed: no.',
      retryAfter: undefined,
    });
  t.match(await end(new ModelError('no.', { code: 'rate_limited', retryAfter: 86_400 })), {
    code: 'rate_limited',
    retryAfter: 86_400,
  });
  t.match(await end(new ModelError('no.', { code: 'overloaded', retryAfter: 9 })), { code: 'overloaded', retryAfter: 9 });
  t.match(await end(new ModelError('no.', { retryAfter: 9 })), { code: 'model_failed', retryAfter: 9 });
  t.match(await end(new ModelError('no.', { code: 'content_filter' }), never), { code: 'model_failed' });
  t.match(await end(never, new ModelError('no.', { code: 'content_filter' })), { code: 'content_filter' });
});
