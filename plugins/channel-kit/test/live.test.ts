import type { AgentEvent } from '@plugboard/kernel';
import { NO_USAGE, type TurnRequest } from '@plugboard/kernel/contracts';
import { eventually, ScriptedRuntime, turnEvents } from '@plugboard/testing';
import t from 'tap';
import type { GrowingAnswer } from '../src/index.js';
import { opened } from './open-channel.js';
import type { To } from './scripted-platform.js';

/** A channel whose turn says what the test pushes, and what the platform was shown. */
function growing({ renew }: { readonly renew?: number } = {}) {
  const steps: (() => void)[] = [];
  const batches: AgentEvent[][] = [];
  /** Resolves when the channel has read the events. */
  const push = async (...events: AgentEvent[]) => {
    batches.push(events);
    for (const step of steps.splice(0)) step();
    for (let n = 0; n < 3; n++) await new Promise((resolve) => setImmediate(resolve));
  };
  const runtime = new ScriptedRuntime({ agents: ['helper'] });
  const shown: string[] = [];
  const answers: GrowingAnswer<To>[] = [];
  const results: (number | Error)[] = [];
  let ended = 0;
  const channel = opened({ runtime });
  runtime.run = (request: TurnRequest) => {
    runtime.requests.push(request);
    return turnEvents(
      (async function* () {
        yield [{ type: 'started', turnId: 't', agent: 'helper' }];
        for (;;) {
          const batch = batches.shift();
          if (!batch) await new Promise<void>((resolve) => steps.push(resolve));
          else if (batch.length > 0) yield batch;
          else break;
        }
        const changes = request.commitState?.([{ role: 'assistant', content: 'The whole.' }]) ?? [];
        await channel.state.change(changes);
        yield [{ type: 'finished', reason: 'stop', usage: NO_USAGE }];
      })(),
      () => undefined,
    );
  };
  channel.platform.live = (answer) => {
    answers.push(answer);
    return {
      every: 1_000,
      ...(renew !== undefined && { renew }),
      async show(text) {
        shown.push(text);
        const result = results.shift();
        if (result instanceof Error) throw result;
        return result;
      },
      async end() {
        ended += 1;
      },
    };
  };
  return { ...channel, push, shown, answers, results, finish: () => push(), ended: () => ended };
}

const text = (said: string): AgentEvent => ({ type: 'text', text: said });
const step = (n: number): AgentEvent => ({ type: 'step', step: n, connection: 'fast' });

t.test('an answer is shown while it grows, as often as the platform allows, and then sent whole', async (t) => {
  const { platform, clock, push, shown, start, stop, sent, finish, ended } = growing();
  await start();
  await platform.say('Hi');
  await eventually(() => shown.length === 1 && clock.pending === 1);
  await push(step(1), text('Let me look.'), text(' Now.'));
  t.equal(shown.length, 1);
  clock.advance(1_000);
  await eventually(() => shown.length === 2 && clock.pending === 1);
  await push(step(2), text('It'), text(' is'));
  clock.advance(1_000);
  await eventually(() => shown.length === 3);
  finish();
  await sent(1);
  t.strictSame(shown, ['', 'Let me look. Now.', 'It is']);
  t.strictSame(platform.texts(), ['The whole.']);
  t.equal(ended(), 1);
  await stop();
});

t.test('an unchanged answer is shown again where the platform forgets it', async (t) => {
  const { platform, clock, shown, start, stop, finish, sent } = growing({ renew: 20_000 });
  await start();
  await platform.say('Hi');
  for (let n = 1; n <= 3; n++) {
    await eventually(() => shown.length === n && clock.pending === 1);
    clock.advance(1_000);
    await eventually(() => clock.pending === 1);
    clock.advance(19_000);
  }
  await eventually(() => shown.length === 4);
  finish();
  await sent(1);
  t.ok(shown.every((one) => one === ''));
  await stop();
});

t.test('while a chat has to wait nothing is shown or sent there, and then the whole is sent', async (t) => {
  const { platform, clock, push, shown, results, start, stop, finish, sent, ended, channel } = growing();
  results.push(9_000);
  await start();
  await platform.say('Hi');
  await eventually(() => shown.length === 1 && clock.pending === 1);
  await push(step(1), text('Hello'));
  clock.advance(5_000);
  finish();
  await eventually(() => channel.status().unsent === 1);
  t.equal(ended(), 0, 'the end is not shown either');
  await eventually(() => clock.pending === 1);
  clock.advance(3_999);
  t.equal(platform.attempts.length, 0);
  clock.advance(1);
  await sent(1);
  t.strictSame(shown, ['']);
  await stop();
});

t.test('what the platform keeps of a growing answer comes back with the reply, and after a crash', async (t) => {
  const first = growing();
  await first.start();
  await first.platform.say('Hi');
  await eventually(() => first.answers.length === 1);
  await first.answers[0]?.keep({ ts: '17.4' });

  const second = opened({ state: first.state });
  const resumed: GrowingAnswer<To>[] = [];
  second.platform.live = (answer) => {
    resumed.push(answer);
    return undefined;
  };
  await second.start();
  await second.sent(1);
  t.strictSame(resumed[0]?.kept, { ts: '17.4' });
  t.equal(resumed[0]?.id, first.answers[0]?.id);
  t.match(second.platform.sent[0], { id: resumed[0]?.id, kept: { ts: '17.4' } });
  await second.stop();
});

t.test('a platform that refuses to show an answer still gets it', async (t) => {
  const { platform, push, shown, results, start, stop, finish, sent } = growing();
  results.push(new Error('no drafts here'));
  await start();
  await platform.say('Hi');
  await eventually(() => shown.length === 1);
  await push(step(1), text('Hello'));
  finish();
  await sent(1);
  t.strictSame(shown, ['']);
  await stop();
});
