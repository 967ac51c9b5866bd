import type { FailureCode } from '@plugboard/kernel/contracts';
import { eventually, ScriptedRuntime } from '@plugboard/testing';
import t from 'tap';
import { keysOf, opened } from './open-channel.js';

t.test('a failed turn is told once, in the words of HTTP, and the chat goes on', async (t) => {
  const { platform, runtime, start, stop, sent } = opened();
  runtime.enqueue({ failure: 'model_failed' }, { failure: 'store_failed', toolsRan: true }, { text: 'Hello.' });
  await start();
  for (const text of ['one', 'two', 'three']) await platform.say(text);
  await sent(3);
  await stop();
  t.strictSame(
    platform.sent.map(({ kind, text }) => [kind, text]),
    [
      ['failed', 'The scripted turn failed.'],
      ['failed', 'The scripted turn failed.'],
      ['reply', 'Hello.'],
    ],
  );
});

t.test('before tools ran, a turn that cannot run for now is tried for ten minutes', async (t) => {
  for (const failure of ['session_busy', 'overloaded', 'rate_limited', 'store_failed'] as const satisfies FailureCode[]) {
    const { platform, runtime, clock, start, stop, sent } = opened();
    runtime.enqueue({ failure }, { failure }, { text: 'Hello.' });
    await start();
    await platform.say('Hi');
    for (const [n, wait] of [1_000, 2_000].entries()) {
      await eventually(() => runtime.requests.length === n + 1 && clock.pending === 1);
      clock.advance(wait);
    }
    await sent(1);
    t.strictSame(platform.texts(), ['Hello.'], failure);
    await stop();
  }
  const { platform, runtime, clock, start, stop } = opened();
  runtime.enqueue(...Array.from({ length: 100 }, () => ({ failure: 'overloaded' as const })));
  await start();
  const began = clock.now();
  await platform.say('Hi');
  while (platform.sent.length === 0) {
    await eventually(() => clock.pending === 1 || platform.sent.length > 0);
    if (platform.sent.length === 0) clock.advance(30_000);
  }
  t.match(platform.sent[0], { kind: 'failed' });
  t.ok(clock.now() - began >= 600_000 && clock.now() - began < 660_000, `${clock.now() - began} ms`);
  await stop();
});

t.test('while a message is tried again, /stop ends that', async (t) => {
  const { platform, runtime, clock, start, stop, sent } = opened();
  runtime.enqueue({ failure: 'overloaded' });
  await start();
  await platform.say('Hi');
  await eventually(() => clock.pending === 1);
  await platform.say('/stop');
  await sent(1);
  t.strictSame(platform.texts(), ['Stopped.']);
  await stop();
});

t.test('a turn that was stored, although the store said that it failed, is not run again', async (t) => {
  const { platform, runtime, state, clock, start, stop, sent } = opened();
  const change = state.change.bind(state);
  state.change = async (changes) => {
    const isApplied = await change(changes);
    if (changes.some(({ key }) => key.startsWith('kit/out/'))) throw new Error('the answer of the disk got lost');
    return isApplied;
  };
  const run = runtime.run.bind(runtime);
  runtime.run = (request) => {
    const turn = run(request);
    return {
      ...turn,
      async *[Symbol.asyncIterator]() {
        try {
          for await (const batch of turn) yield batch;
        } catch {
          const failure = { code: 'store_failed', message: 'The session store failed.', toolsRan: false } as const;
          yield [{ type: 'failed', failure }];
        }
      },
    };
  };
  runtime.enqueue({ text: 'Hello.' });
  await start();
  await platform.say('Hi');
  await eventually(() => clock.pending === 1);
  state.change = change;
  clock.advance(1_000);
  await sent(1);
  await stop();
  t.strictSame(platform.texts(), ['Hello.']);
  t.equal(runtime.requests.length, 1);
});

t.test('after a crash a message whose tools had begun is told, and not run again', async (t) => {
  for (const claim of [{ kind: 'interrupted' }, { kind: 'replay', text: 'The model failed.' }] as const) {
    const { platform, runtime, start, stop, sent } = opened();
    runtime.claim = async () => claim;
    await start();
    await platform.say('Hi');
    await sent(1);
    await stop();
    t.match(platform.sent, [{ kind: 'failed', text: claim.kind === 'replay' ? claim.text : /while tools ran/ }]);
    t.equal(runtime.requests.length, 0);
  }
});

t.test('a turn that ten crashes have cut is given up; a stop is no crash', async (t) => {
  let last = opened();
  await last.start();
  const never = { after: new Promise(() => {}) };
  last.runtime.enqueue(never);
  await last.platform.say('Kill me');
  await last.platform.say('Me too', 'c2');
  await last.platform.say('I wait');
  await eventually(() => last.runtime.requests.length >= 1);
  for (let life = 2; life <= 12; life++) {
    // Each but one of the lives before was killed.
    if (life === 5) await last.stop(AbortSignal.abort()).catch(() => {});
    const { state } = last;
    last = opened({ state });
    last.runtime.enqueue(never, never);
    await last.start();
    if (life < 12) await eventually(() => last.runtime.requests.length > 0);
  }
  await last.sent(1);
  t.match(last.platform.texts('c1')[0], /^The server ended 10 times/);
  t.match(last.platform.sent[0], { kind: 'failed' });
  await last.stop(AbortSignal.abort()).catch(() => {});
});

t.test('a stop lets the answer end; over its limit it cuts it, and the message runs after the next start', async (t) => {
  const first = opened();
  const gate = Promise.withResolvers<void>();
  first.runtime.enqueue({ text: 'Hello.', after: gate.promise });
  await first.start();
  await first.platform.say('Hi');
  await eventually(() => first.runtime.requests.length === 1);
  const stopping = first.stop();
  await t.rejects(first.platform.say('Too late'), { code: 'draining' });
  gate.resolve();
  await stopping;
  const second = opened({ state: first.state });
  await second.start();
  await eventually(() => first.platform.sent.length + second.platform.sent.length === 1);
  t.equal(second.runtime.requests.length, 0);
  second.runtime.enqueue({ after: new Promise(() => {}) });
  await second.platform.say('Hi', 'c1', { ids: ['two'] });
  await second.platform.say('And', 'c1', { ids: ['three'] });
  await eventually(() => second.runtime.requests.length === 1);
  await t.rejects(second.stop(AbortSignal.abort()), /1 answer was cut; its message is answered after the next start/);
  const third = opened({ state: second.state });
  await third.start();
  await third.sent(2);
  await third.stop();
  t.equal(third.runtime.requests.length, 2);
  t.ok((await keysOf(third.state)).every((key) => /^kit\/(id\/|stopped)/.test(key)));
});

t.test('an agent that is gone after a reload is not asked, and the chat is told', async (t) => {
  const { platform, start, stop, sent } = opened({ runtime: new ScriptedRuntime({ agents: ['another'] }) });
  await start();
  await platform.say('Hi');
  await sent(1);
  await stop();
  t.match(platform.texts(), ['The agent helper is not available. Choose another one with /agent.']);
});
