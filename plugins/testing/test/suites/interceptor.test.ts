import type { AgentEvent, Interceptor } from '@plugboard/kernel';
import type { AgentEvents } from '@plugboard/kernel/contracts';
import t from 'tap';
import { interceptorContract } from '../../src/suites/interceptor.js';
import { casesOf, failing, verdict } from '../failing.js';

const cases = (broken: Interceptor) => casesOf((test) => interceptorContract(test, { open: () => broken, timeLimit: 100 }));
const passOn: Interceptor = (turn, next) => next(turn);

const GRAMMAR = 'keeps the grammar of the events of a successful turn';
const FAILED = 'keeps the grammar of the events of a failed turn';
const ERROR = 'does not hide an error of the inner turn as a success';
const UNCHANGED = 'does not change the turn that it receives';
const SIGNAL = 'passes on a signal that aborts with the turn';
const LEAVES = 'ends the inner turn when its reader leaves';
const APART = 'keeps concurrent turns apart';

/** An interceptor that maps each batch. */
function mapping(map: (batch: readonly AgentEvent[]) => readonly AgentEvent[]): Interceptor {
  return async function* (turn, next) {
    for await (const batch of next(turn)) yield map(batch);
  };
}

t.test('passes correct interceptors', async (t) => {
  t.same(await failing(cases(passOn)), []);
  t.same(await failing(cases(mapping((batch) => batch))), []);
  t.same(await failing(cases((turn, next) => next({ ...turn, params: { temperature: 0 } }))), []);
});

t.test('finds each broken promise', async (t) => {
  const without = (type: string) => mapping((batch) => batch.filter((event) => event.type !== type));
  t.same(await failing(cases(without('finished'))), [GRAMMAR, UNCHANGED, APART]);
  t.ok((await failing(cases(without('failed')))).includes(FAILED));
  t.ok((await failing(cases(without('started')))).includes(GRAMMAR));
  t.ok((await failing(cases(mapping((batch) => [...batch, ...batch])))).includes(GRAMMAR));
  const hidesErrors: Interceptor = async function* (turn, next) {
    try {
      yield* next(turn);
    } catch {
      const usage = { promptTokens: 0, completionTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
      yield [{ type: 'finished', reason: 'stop', usage }];
    }
  };
  t.same(await failing(cases(hidesErrors)), [ERROR]);
  const changes: Interceptor = (turn, next) => next(Object.assign(turn, { agent: 'other' }));
  t.same(await failing(cases(changes)), [UNCHANGED]);
  t.same(await failing(cases((turn, next) => next({ ...turn, signal: new AbortController().signal }))), [SIGNAL]);
  const leavesOpen: Interceptor = async function* (turn, next) {
    const inner = next(turn)[Symbol.asyncIterator]();
    for (let batch = await inner.next(); !batch.done; batch = await inner.next()) yield batch.value;
  };
  t.same(await failing(cases(leavesOpen)), [LEAVES]);
  const withoutReturn: Interceptor = (turn, next) => {
    const inner = next(turn)[Symbol.asyncIterator]();
    return { [Symbol.asyncIterator]: () => ({ next: () => inner.next() }) } as AgentEvents;
  };
  t.same(await failing(cases(withoutReturn)), [LEAVES]);
  let first: string | undefined;
  const mixes: Interceptor = (turn, next) => {
    first ??= turn.id;
    return next({ ...turn, id: first });
  };
  t.same(await failing(cases(mixes)), [APART]);
});

t.test('says how the grammar is broken', async (t) => {
  const empty: Interceptor = async function* () {};
  t.match(await verdict(cases(empty), GRAMMAR), 'Found: the stream has no terminal event at its end: nothing');
});

t.test('says what an interceptor that returns no events should return', async (t) => {
  const promised = (async () => {
    throw new Error('no events');
  }) as unknown as Interceptor;
  const found = 'Found: the interceptor returned a Promise, not events; write async function*, or return next(turn)';
  t.match(await verdict(cases(promised), GRAMMAR), found);
  t.match(
    await verdict(cases((() => 3) as unknown as Interceptor), ERROR),
    'the interceptor returned a value of type number, not events',
  );
});
