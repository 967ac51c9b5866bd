/** What a caller is told when the store fails must be true, also of what the store does later. */
import { setImmediate } from 'node:timers/promises';
import type { SessionStore } from '@plugboard/kernel';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { answerWith, collect, endOf, memoryStore, request, ScriptedModel, startRuntime, user } from '../../harness.js';

const S = { project: 'default', agent: 'assistant', key: 's' };

/** What may happen to an operation that a caller is told has failed. */
const FATES = ['is refused', 'is lost', 'takes effect late'] as const;
const SAYS: Readonly<Record<string, RegExp>> = {
  info: /failed to answer\.$/,
  load: /failed to answer\.$/,
  begin: /the turn was not run\.$/,
  commit: /it is unknown whether the request was stored/,
};

for (const [operation, says] of Object.entries(SAYS))
  for (const fate of FATES)
    t.test(`a ${operation} that ${fate}: what is said of it is true`, async (t) => {
      const clock = new ManualClock();
      const store = memoryStore(clock);
      const done: string[] = [];
      for (const name of ['begin', 'commit', 'abandon'] as const) {
        const method = store[name].bind(store) as (...args: unknown[]) => Promise<void>;
        Object.assign(store, { [name]: (...args: unknown[]) => method(...args).then(() => void done.push(name)) });
      }
      const called = Promise.withResolvers<void>();
      const late = Promise.withResolvers<void>();
      const method = (store[operation as 'begin'] as (...args: unknown[]) => Promise<void>).bind(store);
      const failing = async (...args: unknown[]) => {
        called.resolve();
        if (fate === 'is refused') throw new Error('no disk');
        await late.promise;
        return fate === 'is lost' ? new Promise<void>(() => {}) : method(...args);
      };
      Object.assign(store, { [operation]: failing } satisfies Partial<Record<string, unknown>>);
      const model = new ScriptedModel([answerWith('Hi.')]);
      const { runtime, target } = await startRuntime({ models: { fast: model }, store: store as SessionStore, clock });
      const running = collect(runtime.run(request(target(), { session: { key: 's' }, messages: [user('x')] })));
      await called.promise;
      clock.advance(30_000);
      const end = endOf(await running);
      t.match(end, { type: 'failed', failure: { code: 'store_failed', message: says } });
      late.resolve();
      await setImmediate();
      await setImmediate();
      const left = done.filter((name) => name === 'begin').length - done.filter((name) => name !== 'begin').length;
      t.ok(left <= 0, `nothing stays begun: ${done}`);
      if (operation !== 'commit') t.notOk(done.includes('commit'));
      if (/not run/.test(String(says))) t.equal(model.asked.length, 0);
      t.equal(await store.version(S), done.includes('commit') ? 1 : 0);
    });
