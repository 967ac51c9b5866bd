import { setImmediate } from 'node:timers/promises';
import type { AgentEvent, Interceptor } from '@plugboard/kernel';
import type { AnswerRecorder, ClaimResult, IdempotencyKey, IdempotencyRecord, TurnRequest } from '@plugboard/kernel/contracts';
import { eventually, ManualClock } from '@plugboard/testing';
import t from 'tap';
import {
  accountOf,
  answerWith,
  callTools,
  collect,
  endOf,
  type ModelStep,
  request,
  ScriptedModel,
  singleTool,
  startRuntime,
  type TestRuntimeOptions,
} from '../../harness.js';

const KEY: IdempotencyKey = { project: 'default', route: '/v1/chat/completions', key: 'once' };
const SESSION = { project: 'default', agent: 'assistant', key: 's' };

/** Writes down what a transport would: what was said, and how it ended. */
class Recorder implements AnswerRecorder {
  readonly #events: AgentEvent[] = [];

  add(batch: readonly AgentEvent[]): void {
    this.#events.push(...batch);
  }

  text(): string {
    const said = this.#events.map((event) => (event.type === 'text' ? event.text : '')).join('');
    const end = endOf(this.#events);
    return end.type === 'failed' ? `failed: ${end.failure.code}` : said;
  }
}

/** A runtime, and a client that sends it requests with idempotency keys. */
async function idempotentClient(options: TestRuntimeOptions) {
  const { runtime, store, target, lines } = await startRuntime(options);
  /** Claims the key, and runs the turn if it may. */
  const send = async (more: Partial<TurnRequest> = {}, key = KEY, fingerprint = 'f1'): Promise<ClaimResult | AgentEvent[]> => {
    const claimed = await runtime.claim(key, fingerprint, accountOf());
    if (claimed.kind !== 'new') return claimed;
    const idempotency = { claim: claimed.claim, recorder: new Recorder() };
    return collect(runtime.run(request(target(), { idempotency, ...more })));
  };
  /** The same, for a request whose turn is to be run. */
  const run = async (more: Partial<TurnRequest> = {}, key = KEY): Promise<AgentEvent[]> => {
    const result = await send(more, key);
    if ('kind' in result) throw new Error(`the key is ${result.kind}`);
    return result;
  };
  return { runtime, store, lines, send, run };
}

/** A gate at which a model, a tool or an interceptor waits; `reached` resolves when one does. */
function gate() {
  const reached = Promise.withResolvers<void>();
  const open = Promise.withResolvers<void>();
  return {
    reached: reached.promise,
    open: () => open.resolve(),
    pass: () => {
      reached.resolve();
      return open.promise;
    },
  };
}

/** An agent that calls its one tool and then follows the script. */
function withTool(tool: () => Promise<string>, then: readonly ModelStep[]): TestRuntimeOptions {
  return {
    agents: { assistant: { model: 'fast', tools: ['only'] } },
    models: { fast: new ScriptedModel((_, call) => (call === 1 ? callTools(['only', {}]) : then)) },
    tools: { only: singleTool(tool) },
  };
}

for (const [kind, more] of [
  ['stateless', {}],
  ['of a session', { session: { key: 's', fingerprint: 'same bytes' } }],
] as const) {
  t.test(`a turn ${kind} runs once for any number of concurrent requests`, async (t) => {
    const held = gate();
    const model = new ScriptedModel(() => [held.pass(), ...answerWith('hello')]);
    const { send, store } = await idempotentClient({ models: { fast: model } });
    const requests = Array.from({ length: 20 }, () => send(more));
    await held.reached;
    t.strictSame(await send(more, KEY, 'f2'), { kind: 'mismatch' }, 'the key is taken while the turn runs');
    held.open();
    const results = await Promise.all(requests);
    t.equal(results.filter((result) => 'kind' in result && result.kind === 'running').length, 19);
    t.match(
      results.find((result) => Array.isArray(result))?.map(({ type }) => type),
      ['started', 'step', 'text', 'usage', 'finished'],
    );
    t.strictSame(await Promise.all([send(more), send(more)]), Array(2).fill({ kind: 'replay', text: 'hello' }));
    t.strictSame(await send(more, KEY, 'f2'), { kind: 'mismatch' });
    t.equal(model.asked.length, 1);
    t.equal(await store.version(SESSION), kind === 'stateless' ? 0 : 1);
    for (const other of [{ project: 'acme' }, { route: '/v1/responses' }, { key: 'twice' }]) {
      t.ok(Array.isArray(await send(more, { ...KEY, ...other })), `${JSON.stringify(other)} is another key`);
    }
  });

  t.test(`a turn ${kind} that fails before its tools start frees its key`, async (t) => {
    const held = gate();
    const model = new ScriptedModel((_, call): readonly ModelStep[] => {
      if (call === 1) return [new Error('a defect')];
      return call === 2 ? [held.pass(), ...answerWith('too late')] : answerWith('hello');
    });
    const { run, send } = await idempotentClient({ models: { fast: model } });
    t.match(endOf(await run(more)), { failure: { code: 'crashed', toolsRan: false } });
    const leaves = new AbortController();
    const left = run({ ...more, signal: leaves.signal });
    await held.reached;
    leaves.abort();
    t.match(endOf(await left), { failure: { code: 'abandoned' } });
    // The turn ends shortly after its reader has left.
    await eventually(async () => !('kind' in (await send(more))));
    t.strictSame(await send(more), { kind: 'replay', text: 'hello' });
  });

  t.test(`a turn ${kind} that fails after a tool has started is not run again: its failure is the answer`, async (t) => {
    let ran = 0;
    const { run, send, store } = await idempotentClient(withTool(async () => String(++ran), [new Error('a defect')]));
    t.match(endOf(await run(more)), { failure: { code: 'crashed', toolsRan: true } });
    t.strictSame(await send(more), { kind: 'replay', text: 'failed: crashed' });
    t.equal(ran, 1);
    t.equal(await store.version(SESSION), 0);
  });
}

t.test('the start of tools is recorded before the first one runs, whatever interceptors do', async (t) => {
  const stored: (IdempotencyRecord | string)[] = [];
  const app = withTool(async () => {
    stored.push('the tool runs');
    return 'done';
  }, answerWith('hello'));
  const hides: Interceptor = async function* (turn, next) {
    for await (const batch of next(turn)) yield batch.filter(({ type }) => type !== 'tool-call');
  };
  const { run, send, store } = await idempotentClient({ ...app, interceptors: [hides] });
  const put = store.idempotency.put.bind(store.idempotency);
  store.idempotency.put = async (record) => {
    await put(record);
    stored.push(record);
  };
  await run();
  t.strictSame(stored.slice(0, 2), [{ key: KEY, fingerprint: 'f1', result: 'began' }, 'the tool runs']);
  t.strictSame(await send(), { kind: 'replay', text: 'hello' });
});

t.test('after a crash a key is free if no tool had started; otherwise the outcome is reported as unknown', async (t) => {
  const { send, store } = await idempotentClient({ models: { fast: new ScriptedModel(() => answerWith('hello')) } });
  await store.idempotency.put({ key: KEY, fingerprint: 'f1', result: 'began' });
  t.strictSame(await send(), { kind: 'interrupted' });
  t.strictSame(await send({}, KEY, 'f2'), { kind: 'mismatch' });
});

t.test('a session turn that ends without running frees its key', async (t) => {
  const held = gate();
  const clock = new ManualClock();
  const { run, send } = await idempotentClient({
    models: { fast: new ScriptedModel((_, call) => (call === 1 ? [held.pass(), ...answerWith('first')] : answerWith('hello'))) },
    clock,
  });
  const session = { key: 's' };
  const first = run({ session }, { ...KEY, key: 'first' });
  await held.reached;
  t.match(endOf(await run({ session: { ...session, busy: 'reject' } })), { failure: { code: 'session_busy' } });
  const leaves = new AbortController();
  const waits = run({ session, signal: leaves.signal });
  await setImmediate();
  t.strictSame(await send(), { kind: 'running' }, 'also while it waits');
  leaves.abort();
  t.match(endOf(await waits), { failure: { code: 'abandoned' } });
  const late = run({ session });
  await setImmediate();
  clock.advance(60_000);
  t.match(endOf(await late), { failure: { code: 'session_busy' } });
  held.open();
  await first;
  t.match(endOf(await run({ session })), { type: 'finished' });
});

t.test('a session that is closed after crashes frees keys', async (t) => {
  const crashes: Interceptor = () => {
    throw new Error('a defect');
  };
  const { run } = await idempotentClient({ models: { fast: new ScriptedModel([]) }, interceptors: [crashes] });
  for (const code of ['crashed', 'crashed', 'crashed', 'session_quarantined', 'session_quarantined']) {
    t.match(endOf(await run({ session: { key: 's' } })), { failure: { code } });
  }
});

t.test('an overdue turn frees its key unless its tools had started', async (t) => {
  for (const hasTool of [false, true]) {
    const clock = new ManualClock();
    const held = gate();
    const stubborn: Interceptor = async function* (turn, next) {
      for await (const batch of next(turn)) {
        yield batch;
        if (batch.some(({ type }) => type === (hasTool ? 'tool-result' : 'step'))) await held.pass();
      }
    };
    const base = hasTool
      ? withTool(async () => 'done', answerWith('x'))
      : { models: { fast: new ScriptedModel([answerWith('x')]) } };
    const { run, send, runtime, store } = await idempotentClient({ ...base, interceptors: [stubborn], clock });
    const turn = run({ session: { key: 's' } });
    await held.reached;
    const stopped = t.rejects(runtime.stop(new AbortController().signal), /1 turn was still running/);
    clock.advance(30_000);
    clock.advance(5_000);
    t.match(endOf(await turn), { failure: { code: 'stopped' } });
    await stopped;
    await setImmediate();
    const claimed = await runtime.claim(KEY, 'f1', accountOf());
    t.match(claimed, hasTool ? { kind: 'replay', text: 'failed: stopped' } : { kind: 'new' });
    held.open();
    await setImmediate();
    t.equal(await store.version(SESSION), 0);
    if (!hasTool) t.strictSame(await send(), { kind: 'running' }, 'what was left behind does not let go of what another holds');
  }
});

t.test('a turn whose answer is being stored when the server stops has that answer', async (t) => {
  const clock = new ManualClock();
  const held = gate();
  const { run, send, runtime, store } = await idempotentClient({
    models: { fast: new ScriptedModel([answerWith('hello')]) },
    settings: { limits: { drain: '1s' } },
    clock,
  });
  const commit = store.commit.bind(store);
  store.commit = async (...turn) => {
    await held.pass();
    await commit(...turn);
  };
  const turn = run({ session: { key: 's' } });
  await held.reached;
  const stopped = runtime.stop(new AbortController().signal);
  clock.advance(1_000);
  clock.advance(5_000);
  t.strictSame(await send(), { kind: 'running' });
  held.open();
  t.match(endOf(await turn), { type: 'finished' });
  await stopped;
  t.strictSame(await send(), { kind: 'replay', text: 'hello' });
});

t.test('a session store that fails', async (t) => {
  const broken = async () => {
    throw new Error('disk full');
  };
  t.test('during the claim: the turn is not run, and a warning is logged', async (t) => {
    const { runtime, store, lines } = await idempotentClient({ models: { fast: new ScriptedModel([]) } });
    store.idempotency.claim = broken;
    t.match(await runtime.claim(KEY, 'f1', accountOf()), { kind: 'failed', failure: { code: 'store_failed', toolsRan: false } });
    t.match(lines.at(-1), { level: 'warn', msg: /^a request was not run/ });
  });

  t.test('when a key is freed: a warning is logged', async (t) => {
    const { runtime, store, lines } = await idempotentClient({ models: { fast: new ScriptedModel([]) } });
    store.idempotency.release = broken;
    const claimed = await runtime.claim(KEY, 'f1', accountOf());
    if (claimed.kind === 'new') claimed.claim.release();
    await setImmediate();
    t.match(lines.at(-1), { level: 'warn', msg: /^could not free an idempotency key/ });
  });

  t.test('before tools start: they do not run', async (t) => {
    const { run, store } = await idempotentClient(withTool(() => t.fail('the tool ran') as never, answerWith('hello')));
    store.idempotency.put = broken;
    t.match(endOf(await run()), { failure: { code: 'store_failed' } });
  });

  t.test('at the end: the turn fails, and the record of its tools remains', async (t) => {
    const { run, send, store } = await idempotentClient(withTool(async () => 'done', answerWith('hello')));
    store.commit = broken;
    t.match(endOf(await run({ session: { key: 's' } })), { failure: { code: 'store_failed', toolsRan: true } });
    t.strictSame(await send(), { kind: 'interrupted' });
  });

  t.test('at a failure: the record of its tools remains, and a warning is logged', async (t) => {
    const { run, send, store, lines } = await idempotentClient(
      withTool(async () => {
        store.idempotency.put = broken;
        return 'done';
      }, [new Error('a defect')]),
    );
    t.match(endOf(await run()), { failure: { code: 'crashed' } });
    t.strictSame(await send(), { kind: 'interrupted' });
    t.match(
      lines.find(({ msg }) => msg.startsWith('could not store the failure of a turn')),
      { level: 'warn' },
    );
  });
});

t.test('a claim that no turn was run with is released by its owner', async (t) => {
  const { runtime, send } = await idempotentClient({ models: { fast: new ScriptedModel(() => answerWith('ok')) } });
  const first = await runtime.claim(KEY, 'f1', accountOf());
  if (first.kind !== 'new') throw new Error(first.kind);
  t.match(await runtime.claim(KEY, 'f1', accountOf()), { kind: 'running' });
  first.claim.release();
  first.claim.release();
  const second = await runtime.claim(KEY, 'f2', accountOf());
  t.match(second, { kind: 'new' });
  first.claim.release();
  t.match(await runtime.claim(KEY, 'f2', accountOf()), { kind: 'running' }, 'a released claim frees no later one');
  if (second.kind === 'new') second.claim.release();
  t.match(endOf((await send()) as AgentEvent[]), { type: 'finished' });
});

t.test('releasing a claim does not free the key of its turn', async (t) => {
  const at = gate();
  const model = new ScriptedModel(() => [at.pass(), ...answerWith('ok')]);
  const { runtime, target } = await startRuntime({ models: { fast: model } });
  const claimed = await runtime.claim(KEY, 'f1', accountOf());
  if (claimed.kind !== 'new') throw new Error(claimed.kind);
  const turn = collect(runtime.run(request(target(), { idempotency: { claim: claimed.claim, recorder: new Recorder() } })));
  claimed.claim.release();
  t.match(await runtime.claim(KEY, 'f1', accountOf()), { kind: 'running' });
  at.open();
  await turn;
  t.match(await runtime.claim(KEY, 'f1', accountOf()), { kind: 'replay' });
});
