import { setImmediate } from 'node:timers/promises';
import type { Message } from '@plugboard/kernel';
import type { TurnCommit } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { answerWith, collect, endOf, memoryStore, request, ScriptedModel, startRuntime, user } from '../../harness.js';

const ID = { project: 'default', agent: 'assistant', key: 's' };
const assistant = (content: string): Message => ({ role: 'assistant', content });

/**
 * A runtime over a store whose commits a test can hold back, and a model that says how many
 * messages it was sent, when it is let.
 */
async function heldWorld() {
  const clock = new ManualClock();
  const store = memoryStore(clock);
  const commit = store.commit.bind(store);
  const gates: { commit?: Promise<void>; model?: Promise<void> } = {};
  const reached = { commit: Promise.withResolvers<void>(), model: Promise.withResolvers<void>() };
  store.commit = async (id, turn: TurnCommit) => {
    reached.commit.resolve();
    await gates.commit;
    await commit(id, turn);
  };
  const model = new ScriptedModel(({ messages }) => {
    reached.model.resolve();
    return [...(gates.model ? [gates.model] : []), ...answerWith(`${messages.length}`)];
  });
  const app = await startRuntime({ models: { fast: model }, clock, store });
  const send = (text: string, busy: 'enqueue' | 'interrupt' = 'enqueue') =>
    collect(app.runtime.run(request(app.target(), { messages: [user(text)], session: { key: 's', busy } })));
  return { clock, store, commit, gates, reached, send };
}

t.test('a turn is not committed if the session has changed since it was loaded', async (t) => {
  const { store, commit, gates, reached, send } = await heldWorld();
  const gate = Promise.withResolvers<void>();
  gates.model = gate.promise;
  const turn = send('one');
  await reached.model.promise;
  const theirs = [user('from elsewhere'), assistant('ok')];
  await commit(ID, { expected: 0, messages: theirs });
  gate.resolve();
  t.match(endOf(await turn), { type: 'failed', failure: { code: 'session_busy' } });
  t.strictSame((await store.load(ID)).messages, theirs);
  delete gates.model;
  t.match(endOf(await send('two')), { type: 'finished' });
  t.strictSame((await store.load(ID)).messages, [...theirs, user('two'), assistant('3')]);
});

t.test('R-023 a turn that is being stored ends as the store decides, and the interrupting turn waits for it', async (t) => {
  const { clock, store, gates, reached, send } = await heldWorld();
  const slowCommit = Promise.withResolvers<void>();
  gates.commit = slowCommit.promise;
  const first = send('one');
  await reached.commit.promise;
  const second = send('two', 'interrupt');
  clock.advance(5_000);
  await setImmediate();
  slowCommit.resolve();
  t.match(endOf(await first), { type: 'finished' });
  t.match(endOf(await second), { type: 'finished' });
  t.strictSame((await store.load(ID)).messages, [user('one'), assistant('1'), user('two'), assistant('3')]);
});

t.test('the next turn sees a commit that succeeds after its time limit', async (t) => {
  const { clock, store, gates, reached, send } = await heldWorld();
  const slowCommit = Promise.withResolvers<void>();
  gates.commit = slowCommit.promise;
  const first = send('one');
  await reached.commit.promise;
  const slowModel = Promise.withResolvers<void>();
  gates.model = slowModel.promise;
  reached.model = Promise.withResolvers();
  const second = send('two');
  clock.advance(30_000);
  t.match(endOf(await first), { failure: { code: 'store_failed' } });
  await reached.model.promise;
  slowCommit.resolve();
  await setImmediate();
  slowModel.resolve();
  t.match(endOf(await second), { failure: { code: 'session_busy' } }, 'its answer did not know of the first');
  t.strictSame((await store.load(ID)).messages, [user('one'), assistant('1')]);
  t.match(endOf(await send('three')), { type: 'finished' });
  t.strictSame((await store.load(ID)).messages.at(-1), assistant('3'));
});
