import type { Message } from '@plugboard/kernel';
import t from 'tap';
import { ScriptedModel, startRuntime, storeWith, user } from '../harness.js';

const ID = { project: 'default', agent: 'assistant', key: 's' };
const NOTE: Message = { role: 'assistant', content: 'The previous answer was interrupted.' };
const calling: Message = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'theirs', arguments: '{}' } }],
};
const result: Message = { role: 'tool', tool_call_id: 'call_1', content: 'done' };

/**
 * What a session holds when a server has started again, in which a turn with that input was cut.
 */
async function recovered(kept: readonly Message[], input: readonly Message[]) {
  const store = storeWith({ recover: async () => [{ id: ID, turnId: 'turn_cut', input }] });
  if (kept.length > 0) await store.commit(ID, { expected: 0, messages: kept });
  const { lines } = await startRuntime({
    agents: { assistant: { model: 'fast', onRestart: 'keep-input' } },
    models: { fast: new ScriptedModel([]) },
    store,
  });
  return { messages: (await store.load(ID)).messages, warnings: lines.map(({ msg }) => msg) };
}

t.test('keep-input: the input is stored after the messages of the session', async (t) => {
  t.strictSame((await recovered([], [user('one')])).messages, [user('one'), NOTE]);
  const kept = [user('one'), calling];
  t.strictSame((await recovered(kept, [result])).messages, [...kept, result, NOTE]);
});

t.test('keep-input: calls that a later turn has left open are closed', async (t) => {
  const kept = [user('two'), calling];
  const closed: Message = {
    role: 'tool',
    tool_call_id: 'call_1',
    content: 'Error: the caller returned no result for this call.',
  };
  t.strictSame((await recovered(kept, [user('one')])).messages, [...kept, closed, user('one'), NOTE]);
});

t.test('keep-input: results of calls that a later turn has closed are not stored', async (t) => {
  const kept: Message[] = [user('one'), calling, result, user('two'), { role: 'assistant', content: 'ok' }];
  const { messages, warnings } = await recovered(kept, [result]);
  t.strictSame(messages, kept);
  t.match(warnings, [/^the server died during a turn/, /does not fit after the stored messages of its session/]);
});

t.test('S-76 keep-input: of the session, only the last turns are read', async (t) => {
  const recover = async () => [{ id: ID, turnId: 'turn_cut', input: [user('two')] }];
  const load = () => Promise.reject(new Error('the whole session was loaded'));
  const store = storeWith({ recover, load });
  await store.commit(ID, { expected: 0, messages: [user('one'), { role: 'assistant', content: 'ok' }] });
  const agents = { assistant: { model: 'fast', onRestart: 'keep-input' } };
  await startRuntime({ agents, models: { fast: new ScriptedModel([]) }, store });
  t.match(await store.turns(ID, { limit: 1, order: 'desc' }), [{ turn: 2, messages: [user('two'), NOTE] }]);
});
