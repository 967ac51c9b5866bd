import type { Message } from '@plugboard/kernel';
import type { TurnRequest } from '@plugboard/kernel/contracts';
import t from 'tap';
import {
  answerWith,
  callTools,
  collect,
  endOf,
  memoryStore,
  request,
  ScriptedModel,
  startRuntime,
  storeWith,
} from '../../harness.js';
import { asked, start as startWithApprovals } from '../pending/support.js';

const CHANGE = { entry: 'transports.pager', key: 'offset', text: '7' };
const SESSION = { project: 'default', agent: 'assistant', key: 's' };

/** Runs a turn. @returns its last event. */
async function run(app: Awaited<ReturnType<typeof startRuntime>>, more: Partial<TurnRequest>) {
  const asked = { session: { key: 's' }, ...more } as TurnRequest;
  return endOf(await collect(app.runtime.run(request(app.target(), asked))));
}

t.test('a turn commits the changes of its transport with its own messages', async (t) => {
  const store = memoryStore();
  const app = await startRuntime({ models: { fast: new ScriptedModel([answerWith('hello')]) }, store });
  const asked: (readonly Message[])[] = [];
  const end = await run(app, {
    commitState: (answer) => {
      asked.push(answer);
      return [CHANGE];
    },
  });
  t.match(end, { type: 'finished' });
  t.match(asked, [[{ role: 'assistant', content: 'hello' }]], 'called once, with the answer');
  t.equal(await store.state.get(CHANGE.entry, CHANGE.key), '7');
  t.equal(await store.version(SESSION), 1);
});

t.test('AP-3 the text that asks for approval is the last message of the answer', async (t) => {
  const calls = callTools(['shell__run', { command: 'ls' }], ['shell__run', { command: 'pwd' }]);
  const app = await startWithApprovals({ steps: [calls, answerWith('Both done.')] });
  const said: string[] = [];
  const commitState = (answer: readonly Message[]) => {
    said.push(String(answer.at(-1)?.content));
    return [{ ...CHANGE, text: String(said.length) }];
  };
  const [first, second] = asked(await app.ask('List it', { commitState }));
  await app.ask(`approve ${first?.code}`, { commitState });
  t.equal(await app.store.state.get(CHANGE.entry, CHANGE.key), '2', 'also if only a decision is stored');
  await app.ask(`deny ${second?.code}`, { commitState });
  t.match(said, [new RegExp(`approve ${first?.code}[^]*approve all`), new RegExp(`approve ${second?.code}`), 'Both done.']);
  t.notMatch(said[1], `${first?.code}`, 'it is decided');
  t.equal(await app.store.state.get(CHANGE.entry, CHANGE.key), '3');
});

t.test('a turn whose changes expect another value is not stored, and can be sent again', async (t) => {
  const store = memoryStore();
  const app = await startRuntime({ models: { fast: new ScriptedModel([answerWith('hello'), answerWith('hello')]) }, store });
  const commitState = () => [{ ...CHANGE, expected: '6' }];
  t.match(await run(app, { commitState }), { type: 'failed', failure: { code: 'session_busy' } });
  t.equal(await store.version(SESSION), 0);
  await store.state.change([{ ...CHANGE, text: '6' }]);
  t.match(await run(app, { commitState }), { type: 'finished' });
  t.equal(await store.version(SESSION), 1);
});

t.test('a decision whose changes expect another value fails', async (t) => {
  const calls = callTools(['shell__run', { command: 'ls' }], ['shell__run', { command: 'pwd' }]);
  const app = await startWithApprovals({ steps: [calls, answerWith('Both done.')] });
  const [first] = asked(await app.ask('List it'));
  const decided = await app.ask(`approve ${first?.code}`, { commitState: () => [{ ...CHANGE, expected: '6' }] });
  t.match(endOf(decided), { type: 'failed', failure: { code: 'session_busy' } });
});

t.test('a turn with commitState begins without its messages, which its transport has', async (t) => {
  const inputs: (readonly Message[])[] = [];
  const store = storeWith({ begin: async (_, { input }) => void inputs.push(input) });
  const app = await startRuntime({ models: { fast: new ScriptedModel([answerWith('hello'), answerWith('hello')]) }, store });
  await run(app, { commitState: () => [CHANGE] });
  await run(app, {});
  t.match(inputs, [[], [{ role: 'user' }]]);
});

t.test('a turn that fails changes nothing', async (t) => {
  const store = memoryStore();
  const app = await startRuntime({ models: { fast: new ScriptedModel([[new Error('down')]]) }, store });
  let asked = 0;
  const commitState = () => [{ ...CHANGE, text: String(++asked) }];
  t.match(await run(app, { commitState }), { type: 'failed' });
  t.equal(asked, 0);
  t.equal(await store.state.get(CHANGE.entry, CHANGE.key), undefined);
});

t.test('a turn whose commitState throws fails, and is not stored', async (t) => {
  const store = memoryStore();
  const app = await startRuntime({ models: { fast: new ScriptedModel([answerWith('hello')]) }, store });
  const broken = () => {
    throw new Error('no offset');
  };
  t.match(await run(app, { commitState: broken }), { type: 'failed', failure: { code: 'crashed' } });
  t.equal(await store.version(SESSION), 0);
  t.match(app.lines, [{ err: { message: 'no offset' } }]);
});

t.test('a turn whose store fails changes nothing', async (t) => {
  const store = storeWith({
    commit: async () => {
      throw new Error('disk full');
    },
  });
  const app = await startRuntime({ models: { fast: new ScriptedModel([answerWith('hello')]) }, store });
  t.match(await run(app, { commitState: () => [CHANGE] }), { type: 'failed', failure: { code: 'store_failed' } });
  t.equal(await store.state.get(CHANGE.entry, CHANGE.key), undefined);
});

t.test('commitState needs a session', async (t) => {
  const app = await startRuntime({ models: { fast: new ScriptedModel([answerWith('hello')]) } });
  t.match(await run(app, { session: undefined, commitState: () => [CHANGE] }), { type: 'failed', failure: { code: 'crashed' } });
  t.match(app.lines, [{ err: { message: /a turn without a session has no commit/ } }]);
});

/** Compiles: a request is of one kind, with what belongs to that kind. */
export function kindsOf(
  whole: TurnRequest & { readonly session?: undefined; readonly history?: undefined },
): readonly TurnRequest[] {
  const kind = { ...whole, summarize: undefined, wholeHistory: undefined, commitState: undefined };
  return [
    { ...kind, session: { key: 's' }, wholeHistory: true, commitState: () => [] },
    { ...kind, history: [], wholeHistory: true },
    { ...kind, summarize: true },
    // @ts-expect-error a session has its history
    { ...kind, session: { key: 's' }, history: [] },
    // @ts-expect-error without a session there is no commit
    { ...kind, commitState: () => [] },
    // @ts-expect-error a summary is of `messages`
    { ...kind, summarize: true, history: [] },
  ];
}
