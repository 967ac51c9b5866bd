/** What becomes of calls whose answer is lost while the server lives. */
import type { AgentEvent, Tool, ToolInterceptor } from '@plugboard/kernel';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { answerWith, callTools, ScriptedModel, senderFor, startRuntime, tool } from '../../harness.js';

const UNKNOWN = 'Whether the call took effect is unknown.';

/** An error of a tool whose request was sent, and whose answer was lost. */
function lost(message = 'the connection broke'): Error {
  return Object.assign(new Error(message), { effect: 'unknown' });
}

interface Options extends Partial<Tool> {
  readonly interceptors?: Record<string, ToolInterceptor>;
}

/** A turn that calls one tool once. Returns the key of each attempt, and the result. */
async function callOnce({ run = () => 'sent', interceptors = {}, ...more }: Options, clock = new ManualClock()) {
  const keys: string[] = [];
  const mail: Tool = {
    ...tool('send', (input, call) => {
      keys.push(`${call.turnId}/${call.index}`);
      return run(input, call);
    }),
    effect: 'write',
    ...more,
  };
  const app = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['mail'] } },
    models: { fast: new ScriptedModel([callTools(['mail__send', {}]), answerWith('Done.')]) },
    tools: { mail: { tools: () => [mail] } },
    shared: { mail: { timeout: '10s' } },
    toolInterceptors: interceptors,
    clock,
  });
  const events = await senderFor(app)('Send it');
  const result = events.find((event): event is AgentEvent & { type: 'tool-result' } => event.type === 'tool-result');
  const [turn] = (await app.store.turns({ project: 'default', agent: 'assistant', key: 's' }, { limit: 1, order: 'desc' })) ?? [];
  return { keys, result, state: JSON.parse(turn?.record ?? '{}').calls[0].state, lines: app.lines };
}

/** Fails at the first attempt. */
function first(error: unknown): Tool['run'] {
  let attempts = 0;
  return () => {
    attempts++;
    if (attempts === 1) throw error;
    return `sent at attempt ${attempts}`;
  };
}

t.test('TC-1 a call whose answer is lost is made once more, with its key, where that has no second effect', async (t) => {
  for (const safe of [{ effect: 'read' }, { effect: 'idempotent' }, { keyed: true }] as const) {
    const { keys, result, state } = await callOnce({ ...safe, run: first(lost()) });
    t.match(result, { content: 'sent at attempt 2', isError: false, effect: undefined }, JSON.stringify(safe));
    t.equal(keys.length, 2);
    t.equal(keys[0], keys[1], 'the same key');
    t.equal(state, 'completed');
  }
  const { keys, result } = await callOnce({ keyed: true, run: first(new Error('no such recipient')) });
  t.match(result, { content: 'The tool failed: no such recipient', isError: true, effect: undefined });
  t.equal(keys.length, 1, 'an ordinary failure is an answer');
});

t.test('TC-1 verify(key) settles a call before it is made once more', async (t) => {
  const asked: string[] = [];
  const verify = (key: string) => {
    asked.push(key);
    return 'it was sent';
  };
  const sent = await callOnce({ verify, run: first(lost()) });
  t.match(sent.result, { content: 'it was sent', isError: false, effect: undefined });
  t.strictSame([sent.keys.length, asked], [1, sent.keys]);

  const missing = await callOnce({ verify: () => undefined, run: first(lost()) });
  t.match(missing.result, { content: 'sent at attempt 2', isError: false });

  const broken = await callOnce({
    verify: () => {
      throw new Error('the list cannot be read');
    },
    run: first(lost()),
  });
  t.match(broken.result, { content: `The tool failed: the list cannot be read. ${UNKNOWN}`, effect: 'unknown' });
  t.equal(broken.keys.length, 1);
});

t.test('TC-2 of any other call, and after a second lost answer, the effect is unknown', async (t) => {
  const other = await callOnce({ run: first(lost()) });
  t.match(other.result, { content: `The tool failed: the connection broke. ${UNKNOWN}`, isError: true, effect: 'unknown' });
  t.equal(other.keys.length, 1);
  t.equal(other.state, 'unknown');

  const says = () => {
    throw lost('gone: whether the call took effect is unknown');
  };
  const twice = await callOnce({ keyed: true, run: says });
  t.equal(twice.result?.content, 'The tool failed: gone: whether the call took effect is unknown', 'said once');
  t.strictSame([twice.keys.length, twice.state], [2, 'unknown']);

  const refused = [lost(), new Error('it is not running')];
  const after = await callOnce({
    keyed: true,
    run: () => {
      throw refused.shift();
    },
  });
  t.equal(after.result?.content, `The tool failed: it is not running. ${UNKNOWN}`, 'of the first attempt nothing is known');

  const read = await callOnce({
    effect: 'read',
    run: () => {
      throw lost();
    },
  });
  t.match(read.result, { content: 'The tool failed: the connection broke', effect: undefined }, 'a read has none');
  t.strictSame([read.keys.length, read.state], [2, 'failed']);
});

t.test('TC-1 TC-2 a call that runs out of time is settled like one whose connection broke', async (t) => {
  /** Hangs at the first attempts, each until its time is over. */
  const hangs = (times: number, clock: ManualClock): Tool['run'] => {
    let attempts = 0;
    return () => {
      if (attempts++ >= times) return 'sent';
      queueMicrotask(() => clock.advance(10_000));
      return new Promise(() => {});
    };
  };
  const late = 'The tool did not finish within 10 s and was stopped.';
  for (const [more, times, content, attempts] of [
    [{ keyed: true }, 1, 'sent', 2],
    [{ keyed: true }, 2, `${late} ${UNKNOWN}`, 2],
    [{ verify: () => 'it was sent' }, 1, 'it was sent', 1],
    [{}, 1, `${late} ${UNKNOWN}`, 1],
    [{ effect: 'read' }, 1, late, 1],
  ] as const) {
    const clock = new ManualClock();
    const { result, keys } = await callOnce({ ...more, run: hangs(times, clock) }, clock);
    t.equal(result?.content, content);
    t.equal(result?.effect, content.includes(UNKNOWN) ? 'unknown' : undefined);
    t.equal(keys.length, attempts);
  }
});

t.test('TC-1 a second attempt passes the interceptors, which cannot hide that the first one was lost', async (t) => {
  const seen: string[] = [];
  const redact: ToolInterceptor = async (call, next) => {
    seen.push(call.id);
    return String(await next(call)).replace('sent', '[redacted]');
  };
  const passed = await callOnce({ keyed: true, run: first(lost()), interceptors: { redact } });
  t.match(passed.result, { content: '[redacted] at attempt 2', isError: false });
  t.strictSame(seen, [seen[0], seen[0]]);

  const hide: ToolInterceptor = (call, next) => next(call).catch(() => 'all is well');
  const hidden = await callOnce({ run: first(lost()), interceptors: { hide } });
  t.match(hidden.result, { content: 'all is well', effect: 'unknown' });

  let times = 0;
  const once: ToolInterceptor = (call, next) => {
    times++;
    if (times > 1) return 'only one at a time';
    return next(call);
  };
  const kept = await callOnce({ keyed: true, run: first(lost()), interceptors: { once } });
  t.match(kept.result, { content: `The tool failed: the connection broke. ${UNKNOWN}`, effect: 'unknown' });

  times = 0;
  const refusing: ToolInterceptor = (call, next) => {
    times++;
    if (times > 1) throw new Error('a defect');
    return next(call);
  };
  const defect = await callOnce({ keyed: true, run: first(lost()), interceptors: { refusing } });
  t.match(defect.result, { content: `The tool failed: the connection broke. ${UNKNOWN}`, effect: 'unknown' });

  const failing: ToolInterceptor = async (call, next) => {
    await next(call).catch(() => {});
    throw new Error('a defect');
  };
  const failed = await callOnce({ run: first(lost()), interceptors: { failing } });
  t.match(failed.result, { content: /^The tool failed: an internal error.* Whether the call took effect is unknown\.$/ });

  const clock = new ManualClock();
  const waits: ToolInterceptor = () => {
    queueMicrotask(() => clock.advance(10_000));
    return new Promise(() => {});
  };
  const unsent = await callOnce({ interceptors: { waits } }, clock);
  t.match(unsent.result, { content: 'The tool did not finish within 10 s and was stopped.', effect: undefined });
  t.equal(unsent.keys.length, 0, 'the tool did not run');
});

t.test('a tool whose verify is not a function is skipped', async (t) => {
  await t.rejects(callOnce({ verify: true as never }), { message: /the member "verify" of the tool "send" is not a function/ });
});
