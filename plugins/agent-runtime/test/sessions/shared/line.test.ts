import type { ToolInterceptor } from '@plugboard/kernel';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import {
  answerWith,
  callTools,
  endOf,
  type ModelStep,
  request,
  ScriptedModel,
  singleTool,
  textOfEvents,
  user,
} from '../../harness.js';
import { inLine, stored, twoServers } from './support.js';

t.test('PG-14 turns of one session run one at a time over two servers, in the order of their arrival', async (t) => {
  const { memory, call, one, two } = await twoServers();
  const first = one.send('a');
  await call(1);
  const second = two.send('b');
  await inLine(memory, 2);
  const third = one.send('c');
  await inLine(memory, 3);
  for (const n of [1, 2, 3]) (await call(n)).answer(`answer ${n}`);
  t.strictSame([await first, await second, await third].map(textOfEvents), ['answer 1', 'answer 2', 'answer 3']);
  t.strictSame(await stored(memory), ['a', 'answer 1', 'b', 'answer 2', 'c', 'answer 3']);
  t.strictSame((await call(3)).request.messages.length, 5, 'the third has the history of both servers');
  t.equal(memory.rows.length, 0);
});

t.test('PG-14 queuedPerSession counts the turns of all servers, and reject sees them', async (t) => {
  const { memory, call, one, two } = await twoServers({ settings: { limits: { queuedPerSession: 1 } } });
  const first = one.send('a');
  await call(1);
  t.match(endOf(await two.send('b', { busy: 'reject' })), {
    failure: { code: 'session_busy', message: /busy with another turn/ },
  });
  const second = two.send('c');
  await inLine(memory, 2);
  t.match(endOf(await one.send('d')), { failure: { code: 'session_busy', message: /its queue is full/ } });
  (await call(1)).answer('one');
  (await call(2)).answer('two');
  await Promise.all([first, second]);
  t.strictSame(await stored(memory), ['a', 'one', 'c', 'two']);
});

t.test('PG-14 a turn waits 60 s for those of other servers', async (t) => {
  const { memory, clock, call, one, two } = await twoServers();
  const first = one.send('a');
  await call(1);
  const second = two.send('b');
  await inLine(memory, 2);
  clock.advance(60_000);
  t.match(endOf(await second), { failure: { code: 'session_busy', message: /for too long/ } });
  (await call(1)).answer('one');
  t.equal(endOf(await first).type, 'finished');
  t.equal(memory.rows.length, 0, 'it has left the line');
});

t.test('PG-18 interrupt ends the turns of other servers, those that wait first', async (t) => {
  const { memory, call, one, two } = await twoServers();
  const first = one.send('a');
  await call(1);
  const waiting = one.send('b');
  await inLine(memory, 2);
  const newer = two.send('c', { busy: 'interrupt' });
  t.match(endOf(await waiting), { failure: { code: 'turn_interrupted' } });
  t.match(endOf(await first), { failure: { code: 'turn_interrupted' } });
  (await call(2)).answer('done');
  t.equal(textOfEvents(await newer), 'done');
  t.strictSame(await stored(memory), ['c', 'done']);
});

t.test('PG-13 a server that lost its lease sends and stores nothing more, and says so', async (t) => {
  const { memory, call, one, two } = await twoServers();
  const first = one.send('a');
  await call(1);
  const waiting = one.send('b');
  await inLine(memory, 2);
  one.server.loseLease();
  const code = { failure: { code: 'lease_lost', toolsRan: false, message: /another server may have the session/ } };
  t.match(endOf(await first), code);
  t.match(endOf(await waiting), code);
  const second = two.send('c');
  (await call(2)).answer('done');
  t.equal(textOfEvents(await second), 'done');
  t.strictSame(await stored(memory), ['c', 'done']);
});

t.test('PG-16 the lease is checked before each batch that a caller gets', async (t) => {
  const { memory, call, one } = await twoServers();
  const first = one.send('a');
  const { answer } = await call(1);
  one.server.isHeld = false; // its clock says so, and nothing else has noticed
  answer('late');
  const events = await first;
  t.match(endOf(events), { failure: { code: 'lease_lost' } });
  t.equal(textOfEvents(events), '');
  t.strictSame(await stored(memory), []);
});

t.test('PG-16 a batch that its reader has not taken yet is not sent after the lease was lost', async (t) => {
  const spoke = Promise.withResolvers<void>();
  const steps: ModelStep[] = [{ type: 'text', text: 'never read' }];
  const silence = new Promise(() => {});
  Object.defineProperty(steps, 1, { get: () => spoke.resolve() ?? silence, enumerable: true });
  const { one } = await twoServers({ models: { fast: new ScriptedModel([steps]) } });
  const asked = request(one.target(), { messages: [user('a')], session: { key: 's' } });
  const reader = one.runtime.run(asked)[Symbol.asyncIterator]();
  t.match(await reader.next(), { value: [{ type: 'started' }] });
  await spoke.promise;
  one.server.isHeld = false;
  t.match(await reader.next(), { value: [{ type: 'failed', failure: { code: 'lease_lost' } }] });
  t.match(await reader.next(), { done: true });
});

t.test('PG-16 the lease is checked before each tool call', async (t) => {
  const model = new ScriptedModel([callTools(['only', {}]), answerWith('never')]);
  let ran = 0;
  const settings = { models: { fast: model }, agents: { assistant: { model: 'fast', tools: ['only'] } } };
  const tools = { only: singleTool(async () => `${++ran}`) };
  const lose: ToolInterceptor = (call, next) => {
    one.server.isHeld = false;
    return next(call);
  };
  const { memory, one } = await twoServers({ ...settings, tools, toolInterceptors: { lose } });
  t.match(endOf(await one.send('a')), { failure: { code: 'lease_lost' } });
  t.equal(ran, 0);
  t.strictSame(await stored(memory), []);
});

t.test('PG-17 the session of a killed server goes on, and its turn is handled once', async (t) => {
  for (const by of ['look', 'turn'] as const) {
    const agents = { assistant: { model: 'fast', onRestart: 'keep-input' } };
    const { memory, clock, call, one, two } = await twoServers({ agents });
    void one.send('a');
    await call(1);
    one.server.die();
    if (by === 'look') {
      clock.advance(5_000);
      await eventually(async () => (await stored(memory)).length > 0);
      t.strictSame(await stored(memory), ['a', 'The previous answer was interrupted.'], 'also if nobody writes to it');
    }
    const second = two.send('b');
    (await call(2)).answer('done');
    t.equal(textOfEvents(await second), 'done');
    clock.advance(5_000);
    t.strictSame(await stored(memory), ['a', 'The previous answer was interrupted.', 'b', 'done'], by);
    t.equal(two.lines.filter(({ event }) => event === 'turn_interrupted').length, 1, by);
  }
});

t.test('PG-17 a turn whose next server dies before it has handled it is handled by a third one, once', async (t) => {
  for (const onRestart of ['keep-input', 'rollback'] as const) {
    for (const by of ['look', 'turn'] as const) {
      const agents = { assistant: { model: 'fast', onRestart } };
      const { memory, clock, call, one, two, start } = await twoServers({ agents });
      void one.send('a');
      await call(1);
      two.server.beforeEnd = () => two.server.die();
      one.server.die();
      if (by === 'turn') void two.send('b');
      else clock.advance(5_000);
      await eventually(() => two.server.failure);
      const three = await start();
      const handled = () => three.lines.filter(({ event }) => event === 'turn_interrupted').length;
      await eventually(() => handled() === 1 && memory.handled.size === 0);
      const last = three.send('c');
      (await call(2)).answer('done');
      t.equal(textOfEvents(await last), 'done');
      const kept = onRestart === 'keep-input' ? ['a', 'The previous answer was interrupted.'] : [];
      t.strictSame(await stored(memory), [...kept, 'c', 'done'], `${onRestart}, ${by}`);
      t.equal(handled(), 1);
    }
  }
});

t.test('PG-17 a server whose recovery fails tries again', async (t) => {
  const agents = { assistant: { model: 'fast', onRestart: 'keep-input' } };
  const { memory, clock, call, one, two } = await twoServers({ agents });
  void one.send('a');
  await call(1);
  one.server.die();
  two.server.failure = new Error('no database');
  clock.advance(5_000);
  await new Promise(setImmediate);
  two.server.failure = undefined;
  clock.advance(5_000);
  await eventually(async () => (await stored(memory)).length > 0);
  await two.runtime.stop(new AbortController().signal);
  t.equal((await stored(memory)).length, 2);
});

t.test('PG-30 a request that has not begun while the store does not work gets 503 with Retry-After', async (t) => {
  const { one } = await twoServers();
  one.server.failure = new Error('no database');
  t.match(endOf(await one.send('a')), { failure: { code: 'overloaded', retryAfter: 5, message: /was not begun/ } });
  t.equal(await one.runtime.ready(), false);
});

t.test('a turn that fails gives the session back before its caller knows', async (t) => {
  const { memory, one, two } = await twoServers({ models: { fast: new ScriptedModel([[new Error('no')], answerWith('ok')]) } });
  t.equal(endOf(await one.send('a')).type, 'failed');
  t.equal(memory.rows.length, 0);
  t.equal(textOfEvents(await two.send('b', { busy: 'reject' })), 'ok');
});
