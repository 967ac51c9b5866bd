import { setImmediate } from 'node:timers/promises';
import type { AgentEvent } from '@plugboard/kernel';
import { type AgentEvents, NO_USAGE, Transcript, TurnError, textOf } from '@plugboard/kernel/contracts';
import t from 'tap';
import { nameAtModel } from '../../../src/engine/directory/tool-names.js';
import { pulled } from '../../../src/engine/log/pulled.js';
import { collect, request, ScriptedModel, startRuntime } from '../../harness.js';

const started: AgentEvent = { type: 'started', turnId: 't', agent: 'a' };
const step: AgentEvent = { type: 'step', step: 1, connection: 'fast' };
const text = (words: string): AgentEvent => ({ type: 'text', text: words });
const finished: AgentEvent = { type: 'finished', reason: 'stop', usage: NO_USAGE };

async function* stream(
  ...batches: readonly (readonly AgentEvent[] | Error)[]
): AgentEvents & AsyncGenerator<readonly AgentEvent[]> {
  for (const batch of batches) {
    if (batch instanceof Error) throw batch;
    yield batch;
  }
}

t.test('no event follows the terminal event, and a throw or an early end becomes one failure', async (t) => {
  const run = async (events: () => AgentEvents, session?: { key: string }) => {
    const app = await startRuntime({ models: { fast: new ScriptedModel([]) }, interceptors: [events] });
    const all = await collect(app.runtime.run(request(app.target(), { session })));
    return { all, errors: app.lines.map(({ err, reason }) => err ?? reason) };
  };
  const call: AgentEvent = { type: 'tool-call', id: '1', name: 'f', arguments: '{}', tool: { entry: 'f', name: 'f' } };
  for (const session of [undefined, { key: 's' }]) {
    const cut = await run(() => stream([started], [text('a'), finished, text('b')], [finished]), session);
    t.strictSame(cut.all, [session ? { ...started, turn: 1 } : started, text('a'), finished]);
    t.strictSame(cut.errors, []);
    const thrown = await run(() => stream([started, call], new TurnError('store_failed', 'late')), session);
    t.match(thrown.all, [started, call, { failure: { code: 'store_failed', message: 'late', toolsRan: true } }]);
    t.match(thrown.errors, ['late']);
    const ended = await run(() => stream([started]), session);
    t.match(ended.all, [started, { failure: { code: 'crashed', toolsRan: false } }]);
    t.match(ended.errors, [{ message: /^i0: the interceptor ended without `finished` or `failed`/ }]);
  }
});

t.test('transcript: escaped and plain text make one message, and split surrogate pairs are joined', (t) => {
  const transcript = new Transcript();
  transcript.add([
    step,
    { type: 'text', text: '\ud83d', json: '\\ud83d' },
    { type: 'text', text: '\ude00', json: '\\ude00' },
    text(' "quoted"\n'),
  ]);
  transcript.add([finished]);
  t.strictSame(transcript.messages(), [{ role: 'assistant', content: '😀 "quoted"\n' }]);
  t.end();
});

t.test('transcript: a step without text is an empty answer', (t) => {
  const transcript = new Transcript();
  transcript.add([step, finished]);
  t.strictSame(transcript.messages(), [{ role: 'assistant', content: '' }]);
  t.end();
});

t.test('names of tools at the model', (t) => {
  t.equal(nameAtModel('clock', 'clock', true), 'clock');
  t.equal(nameAtModel('files', 'read', false), 'files__read');
  t.equal(nameAtModel('my files', 'lesen/ä', false), 'my_files__lesen__');
  const long = nameAtModel('entry', 'x'.repeat(80), false);
  t.equal(long.length, 64);
  t.match(long, /^entry__x+[0-9a-f]{8}$/);
  t.not(long, nameAtModel('entry', 'x'.repeat(81), false), 'the hash makes them different');
  t.end();
});

t.test('the text of a content', (t) => {
  t.equal(textOf(null), '');
  t.equal(textOf('a'), 'a');
  t.equal(
    textOf([
      { type: 'text', text: 'a' },
      { type: 'image_url', image_url: { url: 'x' } },
      { type: 'text', text: 'b' },
    ]),
    'ab',
  );
  t.equal(textOf([{ type: 'refusal', refusal: 'no' }]), 'no');
  t.end();
});

t.test('interceptors pull the agent loop: it starts with the first read, and waits after each batch', async (t) => {
  const seen: string[] = [];
  const events = pulled(async (write) => {
    for (const event of [started, finished]) {
      seen.push(event.type);
      await write([event]);
    }
    seen.push('end');
  });
  await setImmediate();
  t.strictSame(seen, [], 'nothing was read');
  t.strictSame(await events.next(), { value: [started], done: false });
  await setImmediate();
  t.strictSame(seen, ['started'], 'the next batch was not asked for');
  t.strictSame(await events.next(), { value: [finished], done: false });
  t.strictSame(await events.next(), { value: undefined, done: true });
  t.strictSame(seen, ['started', 'finished', 'end']);
});

t.test('a reader that leaves stops the agent loop, and an error of the loop reaches the reader', async (t) => {
  let stopped: unknown;
  const events = pulled(async (write) => {
    try {
      await write([started]);
    } catch (error) {
      stopped = error;
      throw error;
    }
  });
  for await (const batch of events) {
    t.strictSame(batch, [started]);
    break;
  }
  t.match(stopped, { message: /has left/ });

  const failing = pulled(async (write) => {
    await write([started]);
    throw new TurnError('model_failed', 'no');
  });
  await failing.next();
  await t.rejects(failing.next(), { code: 'model_failed' });
});
