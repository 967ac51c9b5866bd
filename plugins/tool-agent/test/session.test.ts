import type { Principal } from '@plugboard/kernel';
import { Account, Budget, OPEN } from '@plugboard/kernel/contracts';
import type { ChatRequest } from '@plugboard/testing';
import t from 'tap';
import { asking, calls, collect, family, resultsOf } from './family.js';

function textsOf({ messages }: ChatRequest): readonly unknown[] {
  return messages.map(({ content }) => content);
}

function account(): Account {
  const made = new Account(new Budget({ name: 'memory', unit: 'bytes', limit: 1e8, setting: 'limits.memory' }), OPEN);
  made.hold();
  return made;
}

const FAMILY = {
  agents: { root: { tools: ['helper'] }, child: {} },
  tools: { helper: asking('child', { session: 'parent' }) },
  plays: {
    root: ({ messages }: ChatRequest) => {
      const last = messages.at(-1);
      return last?.role === 'user' ? calls(['helper', `about ${last.content}`]) : { text: 'Done.' };
    },
    child: ({ messages }: ChatRequest) => ({ text: `I remember ${messages.length - 1} messages.` }),
  },
};

for (const use of ['memory', 'sqlite'] as const) {
  t.test(`AG-7 with ${use}: a child remembers the calls of its session, which nothing else shows`, async (t) => {
    const sessions = use === 'sqlite' ? { use, path: `${t.testdir()}/sessions.db` } : { use };
    const { runtime, run, asked } = await family(t, { ...FAMILY, file: { sessions } });
    const say = (content: string, key?: string, principal: Principal = OPEN) =>
      collect(run('root', { principal, messages: [{ role: 'user', content }], ...(key !== undefined && { session: { key } }) }));
    const results: unknown[] = [];
    for (const [text, key] of [
      ['bees', 's'],
      ['wasps', 's'],
      ['ants', 'other'],
    ] as const) {
      results.push(...resultsOf(await say(text, key)).map(({ content }) => content));
    }
    t.strictSame(results, ['I remember 0 messages.', 'I remember 2 messages.', 'I remember 0 messages.']);
    t.strictSame(asked('child').map(textsOf), [
      ['about bees'],
      ['about bees', 'I remember 0 messages.', 'about wasps'],
      ['about ants'],
    ]);
    await say('mites');
    await say('mites');
    t.strictSame(textsOf(asked('child')[4] as ChatRequest), ['about mites'], 'without a session of the turn there is none');

    const { conversations } = runtime;
    const listed = await conversations.list({ limit: 10, order: 'asc' }, OPEN, account());
    t.strictSame(
      listed.map(({ id }) => [id.agent, id.key]),
      [
        ['root', 's'],
        ['root', 'other'],
      ],
    );
    const [first, second] = listed.map(({ conversation }) => conversation);
    if (first === undefined || second === undefined) throw new Error('sessions are missing');
    const copy = await conversations.fork(first, { key: 'copy' }, OPEN);
    t.match(resultsOf(await say('moths', 'copy')), [{ content: 'I remember 0 messages.' }], 'a fork has none');
    await conversations.delete(first, OPEN);
    t.match(resultsOf(await say('bees', 's')), [{ content: 'I remember 0 messages.' }], 'it was deleted with its session');
    t.match(resultsOf(await say('moths', 'copy')), [{ content: 'I remember 2 messages.' }]);
    t.match(resultsOf(await say('ants', 'other')), [{ content: 'I remember 2 messages.' }]);
    t.ok(copy);
  });
}

t.test('AG-7 calls of one session wait for each other, however many and however long', async (t) => {
  let running = 0;
  let most = 0;
  const { run, asked } = await family(t, {
    ...FAMILY,
    agents: { root: { tools: ['helper'], maxSteps: 50 }, child: { onBusy: 'reject' } },
    tools: { helper: asking('child', { session: 'parent', maxChildren: 20 }) },
    plays: {
      root: (_, nth) =>
        nth === 1 ? calls(...Array.from({ length: 20 }, (_, at): [string, string] => ['helper', `${at}`])) : { text: 'Done.' },
      child: async ({ messages }) => {
        most = Math.max(most, ++running);
        await new Promise(setImmediate);
        running--;
        return { text: `after ${(messages.length - 1) / 2} others` };
      },
    },
    file: { limits: { queuedPerSession: 1 } },
  });
  const results = resultsOf(await collect(run('root', { session: { key: 's' } })));
  t.strictSame(
    results.map(({ content }) => content).toSorted(),
    Array.from({ length: 20 }, (_, at) => `after ${at} others`).toSorted(),
  );
  t.equal(most, 1);
  t.equal(asked('child').length, 20);
});

t.test('AG-7 a session that is running its first turn shows no child', async (t) => {
  const gate = Promise.withResolvers<void>();
  const { runtime, run, model } = await family(t, {
    ...FAMILY,
    plays: { ...FAMILY.plays, child: () => ({ text: [gate.promise, 'Done.'] }) },
  });
  const turn = collect(run('root', { messages: [{ role: 'user', content: 'x' }], session: { key: 's' } }));
  await model.received(2);
  const listed = await runtime.conversations.list({ limit: 10, order: 'asc' }, OPEN, account());
  t.strictSame(
    listed.map(({ id }) => id.agent),
    ['root'],
  );
  gate.resolve();
  await turn;
});

t.test('AG-7 the session of a grandchild belongs to the first one, too', async (t) => {
  const { runtime, run } = await family(t, {
    agents: { root: { tools: ['helper'] }, child: { tools: ['deeper'] }, grandchild: {} },
    tools: { helper: asking('child', { session: 'parent' }), deeper: asking('grandchild', { session: 'parent' }) },
    plays: {
      root: FAMILY.plays.root,
      child: ({ messages }) => {
        const last = messages.at(-1);
        return last?.role === 'user' ? calls(['deeper', String(last.content)]) : { text: String(last?.content) };
      },
      grandchild: FAMILY.plays.child,
    },
  });
  const say = (content: string) => collect(run('root', { messages: [{ role: 'user', content }], session: { key: 's' } }));
  t.match(resultsOf(await say('bees')), [{ content: 'I remember 0 messages.' }]);
  t.match(resultsOf(await say('wasps')), [{ content: 'I remember 2 messages.' }]);
  const [listed, ...others] = await runtime.conversations.list({ limit: 10, order: 'asc' }, OPEN, account());
  t.strictSame(others, []);
  await runtime.conversations.delete(listed?.conversation ?? '', OPEN);
  t.match(resultsOf(await say('moths')), [{ content: 'I remember 0 messages.' }]);
});
