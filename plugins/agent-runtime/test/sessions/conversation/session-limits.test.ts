import type { StoredSession, TurnCommit } from '@plugboard/kernel/contracts';
import t from 'tap';
import { answerWith, collect, endOf, request, ScriptedModel, startRuntime, storeWith, user } from '../../harness.js';

async function runtimeWithSession(loaded: Partial<StoredSession>) {
  const begun: unknown[] = [];
  const store = storeWith({
    load: async () => ({
      version: 1,
      turns: 1,
      messages: [user('x'), { role: 'assistant', content: 'y' }],
      bytes: 100,
      ...loaded,
    }),
    begin: async (_, turn) => void begun.push(turn),
    commit: async () => {},
  });
  const model = new ScriptedModel(() => answerWith('fine'));
  const { runtime, target } = await startRuntime({ models: { fast: model }, store });
  const send = () => collect(runtime.run(request(target(), { session: { key: 's' } })));
  return { send, begun, model };
}

t.test('a session with 64 MiB or 50,000 messages refuses further turns and names the remedy', async (t) => {
  const messages = Array.from({ length: 50_000 }, () => user('x'));
  for (const full of [{ bytes: 64 * 1024 * 1024 }, { messages }]) {
    const { send, begun, model } = await runtimeWithSession(full);
    t.match(await send(), [
      { type: 'failed', failure: { code: 'session_full', message: /start a new session, or fork this one/, toolsRan: false } },
    ]);
    t.strictSame([begun.length, model.asked.length], [0, 0], 'it has not begun');
  }
});

t.test('a session just below the limit accepts one', async (t) => {
  const { send } = await runtimeWithSession({
    bytes: 64 * 1024 * 1024 - 1,
    messages: [user('x'), { role: 'assistant', content: 'y' }],
  });
  t.match(endOf(await send()), { type: 'finished' });
});

t.test('a session is full as soon as its turns have filled it, without a reload', async (t) => {
  let loads = 0;
  const commits: TurnCommit[] = [];
  const store = storeWith({
    load: async () => {
      loads++;
      return { version: 1, turns: 1, messages: [], bytes: 64 * 1024 * 1024 - 100 };
    },
    version: async () => 1 + commits.length,
    commit: async (_, turn) => void commits.push(turn),
  });
  const model = new ScriptedModel(() => answerWith('ä'.repeat(5)));
  const { runtime, target } = await startRuntime({ models: { fast: model }, store });
  const send = (user?: string) => collect(runtime.run(request(target(), { session: { key: 's', user } })));
  t.match(endOf(await send('ada')), { type: 'finished' });
  const bytes = commits.flatMap(({ messages }) => messages).reduce((sum, one) => sum + Buffer.byteLength(JSON.stringify(one)), 0);
  t.ok(bytes > 50 && bytes < 100);
  t.match(endOf(await send()), { type: 'finished' });
  t.match(await send(), [{ failure: { code: 'session_full' } }]);
  t.equal(loads, 1);
  t.strictSame(
    commits.map(({ user }) => user),
    ['ada', undefined],
    'who is talking is kept with the turn',
  );
});
