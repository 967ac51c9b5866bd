/** The log of a turn: who reads from where, who makes the turn wait, and what is kept. */
import { setImmediate } from 'node:timers/promises';
import type { AgentEvent } from '@plugboard/kernel';
import { Account, Budget, NO_USAGE, Transcript, type TurnEvents } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { TurnTask } from '../../../src/engine/turn/turn-task.js';
import { SessionWatch } from '../../../src/sessions/session-watch.js';
import { collect, endOf, request, ScriptedModel, startRuntime, textOfEvents } from '../../harness.js';

const MIB = 1024 * 1024;
const started: AgentEvent = { type: 'started', turnId: 't', agent: 'assistant' };
const step: AgentEvent = { type: 'step', step: 1, connection: 'fast' };
const finished: AgentEvent = { type: 'finished', reason: 'stop', usage: NO_USAGE };
const text = (words: string): AgentEvent => ({ type: 'text', text: words });

const app = await startRuntime({ models: { fast: new ScriptedModel([]) } });
const ambient = {
  clock: new ManualClock(),
  ids: { base62: () => 'id', hex: () => 'id', fraction: () => 0 },
};

/** A turn that runs, whose phases are the test. @param limit of the memory of callers. */
function running({ limit = 64 * MIB, joinable = true }: { limit?: number; joinable?: boolean } = {}) {
  const budget = new Budget({ name: 'memory of callers', unit: 'bytes', limit, setting: 'limits.memory' });
  const turn = new TurnTask({
    account: new Account(budget, undefined),
    request: request(app.target(), { session: { key: 's' } }),
    fingerprint: joinable ? 'f' : undefined,
    idempotent: undefined,
    clock: ambient.clock,
    ids: ambient.ids,
  });
  turn.start(() => new Promise(() => {}));
  const join = (signal = new AbortController().signal) => turn.join(signal, new Account(budget, undefined));
  return { turn, budget, join };
}

const isWaiting = async (full: Promise<unknown> | undefined) =>
  full !== undefined && (await Promise.race([full.then(() => false), setImmediate(true)]));

/** Reads as far as the text so far; the reader can go on. */
async function readUntil(
  events: TurnEvents,
  length: number,
): Promise<{ said: string; rest: AsyncIterator<readonly AgentEvent[]> }> {
  const rest = events[Symbol.asyncIterator]();
  let said = '';
  while (said.length < length) {
    const { value, done } = await rest.next();
    if (done) throw new Error('the events ended');
    said += textOfEvents(value);
  }
  return { said, rest };
}

t.test('R-010 a reader is limited by the size of what it has not read, not by its number', async (t) => {
  for (const event of [
    text('x'.repeat(65_536)),
    { type: 'text', text: '\n', json: '\\n'.repeat(32_768) },
    { type: 'reasoning', text: 'x'.repeat(65_536) },
    { type: 'tool-call', id: '1', name: 'f', arguments: 'x'.repeat(65_536), tool: undefined },
    { type: 'tool-result', id: '1', content: '', images: ['x'.repeat(65_536)], isError: false, milliseconds: 1 },
  ] satisfies AgentEvent[]) {
    const { turn } = running({ joinable: false });
    for (let at = 0; at < 500; at++) t.equal(turn.write([text('token')]), undefined);
    const full = turn.write([event]);
    t.equal(await isWaiting(full), true, event.type);
    const { rest } = await readUntil(turn.events, 2_500);
    await rest.next();
    t.equal(await isWaiting(full), false);
  }
});

t.test('a reader that leaves, and a turn that ends, make nobody wait', async (t) => {
  const { turn, join } = running();
  const large = [text('x'.repeat(100_000))];
  const second = join();
  const full = turn.write(large);
  const reading = collect(turn.events);
  t.equal(await isWaiting(full), true, 'for the reader that does not read');
  await second[Symbol.asyncIterator]().return?.();
  t.equal(await isWaiting(full), false);
  const third = join();
  const again = turn.write(large);
  t.equal(await isWaiting(again), true);
  turn.log.removeLimit();
  t.equal(await isWaiting(again), false);
  turn.finish([finished]);
  t.ok(textOfEvents(await collect(third)) === textOfEvents(await reading), 'what is there is still read');
});

t.test('100,000 events are the same for ten readers that come, stop, leave and come back at any position', async (t) => {
  const { turn, budget, join } = running({ limit: 1024 * MIB });
  const watch = new SessionWatch([turn], 64 * 1024, ambient, () => {});
  const all = Array.from({ length: 10_000 }, (_, batch) => Array.from({ length: 10 }, (_, at) => `${batch}.${at} `));
  const whole = all.flat().join('');
  const readers = [collect(turn.events)];
  let mostKept = 0;
  turn.transcript = new Transcript();
  const write = async (batch: readonly AgentEvent[]) => {
    turn.transcript?.add(batch);
    await turn.write(batch);
    mostKept = Math.max(mostKept, turn.log.kept);
  };
  await write([started, step]);
  for (const [at, words] of all.entries()) {
    if (at % 1_000 === 0 && at < 9_500) {
      // One reads on, one stops, leaves and comes back.
      const back = readUntil(join(), 1).then(async ({ rest }) => {
        await rest.return?.();
        return collect(join());
      });
      readers.push(collect(join()), back);
    }
    await write(words.map(text));
  }
  turn.finish([finished]);
  for (const events of await Promise.all(readers)) {
    t.ok(textOfEvents(events) === whole);
    t.equal(endOf(events).type, 'finished');
  }
  t.ok(mostKept < MIB + 128 * 1024, `${mostKept} bytes were kept`);
  t.equal(budget.used, 0, 'what joined readers reserved is free');
  t.match(await watch.next(), { value: undefined }, 'the watcher that never read was not waited for');
});

t.test('S-66 readers that join share what was sent, and reserve what they make of it', async (t) => {
  const { turn, budget, join } = running({ limit: 8 * MIB });
  turn.write([started, step]);
  const joined = Array.from({ length: 100 }, () => collect(join()));
  const reading = collect(turn.events);
  for (let at = 0; at < 30; at++) await turn.write([text('x'.repeat(10_000))]);
  const { used } = budget;
  turn.finish([finished]);
  t.ok(used <= 8 * MIB);
  t.equal(endOf(await reading).type, 'finished', 'the turn is not disturbed');
  const ends = (await Promise.all(joined)).map((events) => endOf(events));
  const served = ends.filter(({ type }) => type === 'finished').length;
  t.ok(served >= 3, `${served} are served`);
  for (const end of ends) if (end.type === 'failed') t.match(end.failure, { code: 'overloaded', message: /`limits\.memory`/ });
  t.equal(budget.used, 0);
});

t.test('a late reader gets the turn so far, and calls that are being written come whole', async (t) => {
  const { turn, join } = running();
  turn.transcript = new Transcript();
  const reading = collect(turn.events);
  const write = async (...batch: AgentEvent[]) => {
    turn.transcript?.add(batch);
    await turn.write(batch);
  };
  const call = { type: 'tool-call', id: 'c', name: 'f', arguments: '{"a":1}', tool: undefined } as const;
  await write(started, step, text('x'.repeat(2 * MIB)), { type: 'tool-call-delta', id: 'c', name: 'f', arguments: '{"a"' });
  await setImmediate();
  const late = collect(join());
  await write({ type: 'tool-call-delta', id: 'c', name: 'f', arguments: ':1}' }, call, text(' end'));
  turn.finish([finished]);
  const events = await late;
  t.strictSame(
    events.map(({ type }) => type),
    ['started', 'step', 'text', 'tool-call', 'text', 'finished'],
  );
  t.ok(textOfEvents(events) === textOfEvents(await reading));
});
