import type { AgentEvent } from '@plugboard/kernel';
import { conversationId, OPEN } from '@plugboard/kernel/contracts';
import t from 'tap';
import { answerWith, endOf, ScriptedModel, textOfEvents } from '../../harness.js';
import { ID, inLine, twoServers } from './support.js';

const CONVERSATION = conversationId(ID);
type Servers = Awaited<ReturnType<typeof twoServers>>;

/** Watches the session at the second server, and keeps what it sees of each turn. */
async function watch({ two }: Servers) {
  const { turns, events } = await two.runtime.conversations.watch(CONVERSATION, OPEN, 1_000_000);
  const seen = new Map<string, AgentEvent[]>();
  const iterator = events[Symbol.asyncIterator]();
  const readTurn = async () => {
    for (;;) {
      const { value, done } = await iterator.next();
      if (done) return undefined;
      const all = seen.get(value.turn.id) ?? [];
      seen.set(value.turn.id, all);
      all.push(...value.batch);
      if (all.some(({ type }) => type === 'finished' || type === 'failed')) return { turn: value.turn, events: all };
    }
  };
  return { turns, readTurn, iterator, leave: () => events.return() };
}

t.test('PG-20 C-250 a watcher sees the turns of other servers, from what they said so far to their end', async (t) => {
  const gate = Promise.withResolvers<void>();
  const model = new ScriptedModel([
    [{ type: 'text', text: 'hello ' }, gate.promise, ...answerWith('world')],
    answerWith('again'),
  ]);
  const servers = await twoServers({ models: { fast: model } });
  const { memory, one, two } = servers;
  const first = one.send('a');
  await inLine(memory, 1);
  const { turns, readTurn, leave } = await watch(servers);
  t.strictSame(turns, [], 'they come with their first events');
  while (memory.texts < 2) await memory.change();
  gate.resolve();
  const seen = await readTurn();
  t.equal(textOfEvents(seen?.events ?? []), 'hello world');
  t.match(seen?.turn, { messages: [{ content: 'a' }], target: { name: 'assistant' }, record: { reason: 'stop' } });
  t.equal(endOf(await first).type, 'finished');
  await one.send('b');
  t.equal(textOfEvents((await readTurn())?.events ?? []), 'again', 'and those that begin later');
  await two.send('c');
  t.match((await readTurn())?.turn, { messages: [{ content: 'c' }] }, 'beside its own');
  leave();
  t.equal(memory.opened, 0, 'nothing is written for it any more');
});

t.test('PG-20 nothing is made for a turn that is read by no other server', async (t) => {
  const { memory, call, one } = await twoServers();
  const first = one.send('a', { fingerprint: 'f' });
  (await call(1)).answer('one');
  await first;
  t.equal(memory.everOpened, 0);
  t.equal(memory.offers.size, 0);
});

t.test('PG-18 a watcher cancels a turn of another server', async (t) => {
  const servers = await twoServers();
  const { call, one } = servers;
  const first = one.send('a');
  await call(1);
  const { iterator, readTurn } = await watch(servers);
  const { value } = await iterator.next();
  await value?.turn.cancel();
  t.match(endOf(await first), { failure: { code: 'turn_cancelled' } });
  t.match(endOf((await readTurn())?.events ?? []), { failure: { code: 'turn_cancelled' } });
});

t.test('PG-20 a watcher sees a turn end whose server died', async (t) => {
  const servers = await twoServers();
  const { memory, call, one } = servers;
  void one.send('a');
  await call(1);
  const { readTurn } = await watch(servers);
  while (memory.texts < 2) await memory.change();
  one.server.die();
  t.match(endOf((await readTurn())?.events ?? []), { failure: { code: 'stopped' } });
});

t.test('PG-20 a watch ends when the store fails, and shows no turn of an agent that is not here', async (t) => {
  const servers = await twoServers();
  const { memory, call, one, two } = servers;
  const first = one.send('a');
  await call(1);
  memory.agentNames = (text) => text.replace('"agent":"assistant"', '"agent":"gone"');
  const { readTurn } = await watch(servers);
  while (memory.texts < 2) await memory.change();
  two.server.readFails = true;
  memory.wake();
  t.equal(await readTurn(), undefined);
  (await call(1)).answer('one');
  await first;
});
