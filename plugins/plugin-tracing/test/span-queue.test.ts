import { setImmediate } from 'node:timers/promises';
import { type ReadableSpan, TracerProvider } from '@opentelemetry/sdk-trace';
import { CapturedLog, ManualClock } from '@plugboard/testing';
import t from 'tap';
import type { SendFailure } from '../src/otlp-exporter.js';
import { SpanQueue } from '../src/span-queue.js';

/** A queue, a receiver that a test scripts, and what ends spans. */
function opened() {
  const clock = new ManualClock();
  const log = new CapturedLog();
  const batches: (readonly ReadableSpan[])[] = [];
  const receiver: { answer: (signal: AbortSignal) => SendFailure | undefined | Promise<SendFailure | undefined> } = {
    answer: () => undefined,
  };
  const send = async (spans: readonly ReadableSpan[], signal: AbortSignal) => {
    batches.push(spans);
    return receiver.answer(signal);
  };
  const queue = new SpanQueue({ send }, clock, log.logger(clock));
  const tracer = new TracerProvider({ spanProcessors: [queue] }).getTracer('test');
  const end = (count: number, text = '') => {
    for (let i = 0; i < count; i++) tracer.startSpan('work', { attributes: { text } }).end();
  };
  return { clock, log, batches, receiver, queue, end, sizes: () => batches.map(({ length }) => length) };
}

const AWAY: SendFailure = { reason: 'ECONNREFUSED', retryable: true };

t.test('spans wait for five seconds, or until a batch is full', async (t) => {
  const { clock, queue, end, sizes } = opened();
  end(3);
  clock.advance(4999);
  t.strictSame(sizes(), []);
  clock.advance(1);
  t.strictSame(sizes(), [3]);
  await setImmediate();
  end(512);
  t.strictSame(sizes(), [3, 512]);
  await setImmediate();
  end(2);
  await queue.close();
  t.strictSame(sizes(), [3, 512, 2]);
  t.equal(clock.pending, 0);
});

t.test('OB-7 a receiver that is away costs what does not fit, and nothing that waits', async (t) => {
  const { clock, receiver, queue, end, log, batches } = opened();
  receiver.answer = () => AWAY;
  end(10_000);
  await setImmediate();
  t.equal(queue.failure, 'ECONNREFUSED');
  for (let round = 0; round < 5; round++) {
    clock.advance(5000);
    await setImmediate();
  }
  t.equal(batches.length, 6, 'one batch at a time, every five seconds');
  batches.length = 0;
  receiver.answer = () => undefined;
  clock.advance(5000);
  await queue.close();
  t.equal(batches.flat().length, 2048);
  t.match(log.lines, [
    { level: 'warn', reason: 'ECONNREFUSED' },
    { level: 'info', msg: 'the trace receiver takes spans again', dropped: 7952 },
  ]);
});

t.test('OB-7 long texts are bounded by their size, and sent in smaller batches', async (t) => {
  const { clock, receiver, queue, end, batches, log } = opened();
  receiver.answer = () => AWAY;
  end(100, 'x'.repeat(1024 * 1024));
  await setImmediate();
  receiver.answer = () => undefined;
  clock.advance(5000);
  await queue.close();
  const taken = batches.slice(1);
  t.ok(taken.every(({ length }) => length <= 3));
  t.equal(taken.flat().length, 15);
  t.match(log.lines.at(-1), { dropped: 85 });
});

t.test('OB-7 the last spans are given up five seconds after the stop', async (t) => {
  const { clock, receiver, queue, end, log } = opened();
  receiver.answer = (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(AWAY)));
  end(600);
  const closed = queue.close();
  await setImmediate();
  clock.advance(5000);
  await closed;
  t.match(log.lines.at(-1), { level: 'warn', spans: 600 });
  end(1);
  t.equal(clock.pending, 0, 'nothing is queued any more');
});
