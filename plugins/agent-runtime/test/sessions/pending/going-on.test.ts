/** What a turn carries over an approval, and in which order things happen. */
import type { Interceptor, ToolInterceptor } from '@plugboard/kernel';
import type { AgentEvents } from '@plugboard/kernel/contracts';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { answerWith, callTools, endOf, textOfEvents, user } from '../../harness.js';
import { asked, results, start } from './support.js';

const list = (command = 'ls') => callTools(['shell__run', { command }]);

t.test('AP-4 a tool_choice that forces a call forces none after an approval', async (t) => {
  const app = await start({ steps: [list('a'), answerWith('Done.')], agent: { clientTools: 'passthrough' } });
  const forced = { type: 'function', function: { name: 'shell__run' } };
  const [{ code = '' } = {}] = asked(await app.ask('Go', { params: { tool_choice: forced } }));
  await app.ask(`approve ${code}`);
  t.strictSame(
    app.model.asked.map(({ params }) => params.tool_choice),
    [forced, undefined],
  );
});

t.test('AP-4 the limit of tool calls and of steps, and the guard against repeated calls, outlast approvals', async (t) => {
  const limited = await start({ steps: [list('a'), list('b'), answerWith('Done.')] });
  const [{ code = '' } = {}] = asked(await limited.ask('Go', { maxToolCalls: 1 }));
  t.match(endOf(await limited.ask(`approve ${code}`)), { reason: 'length', limit: 'max_tool_calls' });
  t.strictSame(limited.ran, ['a']);

  const repeating = await start({ steps: [list(), list(), list(), answerWith('I stop.')] });
  let events = await repeating.ask('Go');
  for (let n = 0; n < 2; n++) events = await repeating.ask(`approve ${asked(events)[0]?.code}`);
  t.equal(textOfEvents(events), 'I stop.');
  t.strictSame(repeating.ran, ['ls', 'ls'], 'nobody is asked about the third one');
  t.match(results(repeating, 3).at(-1), /^Repeated call/);
});

t.test('R-047 the results of a step reach the model in the order of its calls, whoever decided what', async (t) => {
  const calls: [string, object][] = [
    ['shell__run', { command: 'a' }],
    ['clock', {}],
    ['shell__run', { command: 'b' }],
    ['browse', {}],
    ['shell__run', { command: 'c' }],
  ];
  const more = { clientTools: [{ name: 'browse', description: '', inputSchema: { type: 'object' } }] } as const;
  const app = await start({
    steps: [callTools(...calls), answerWith('Done.'), answerWith('Yes.')],
    agent: { clientTools: 'passthrough' },
  });
  const events = await app.ask('Go', more);
  const [a, b, c] = asked(events).map(({ code }) => code);
  const browse = events.find((event) => event.type === 'tool-call' && !event.tool);
  const id = browse?.type === 'tool-call' ? browse.id : '';
  const tool = { role: 'tool', tool_call_id: id, content: 'page' } as const;
  await app.ask(undefined, { ...more, messages: [tool, user(`approve ${c}\ndeny ${b}\napprove ${a}`)] });
  const order = ['done', 'noon', 'A person denied the call. It did not run.', 'page', 'done'];
  t.strictSame(results(app, 1), order);
  await app.ask('Really?', more);
  t.strictSame(results(app, 2), order, 'in later turns, too');
});

t.test("a decision before the caller's own results waits for them", async (t) => {
  const more = { clientTools: [{ name: 'browse', description: '', inputSchema: { type: 'object' } }] } as const;
  const steps = [callTools(['shell__run', { command: 'ls' }], ['browse', {}]), answerWith('Done.')];
  const app = await start({ steps, agent: { clientTools: 'passthrough' } });
  const events = await app.ask('Go', more);
  const browse = events.find((event) => event.type === 'tool-call' && !event.tool);
  const id = browse?.type === 'tool-call' ? browse.id : '';
  const decided = await app.ask(`approve ${asked(events)[0]?.code}`, more);
  t.equal(textOfEvents(decided), `The decision is kept, and takes effect with the results of these calls: ${id}.`);
  t.strictSame(app.ran, []);
  const answered = await app.ask(undefined, { ...more, messages: [{ role: 'tool', tool_call_id: id, content: 'page' }] });
  t.equal(textOfEvents(answered), 'Done.');
  t.strictSame(results(app, 1), ['done', 'page']);
});

t.test('AP-4 a decision about an expired call goes on with the denial, as an item as well as as a line', async (t) => {
  for (const approve of [true, false]) {
    const clock = new ManualClock();
    const app = await start({ clock, agent: { approvalExpires: '1m' } });
    const [{ id = '' } = {}] = asked(await app.ask('List it'));
    clock.advance(60_000);
    const events = await app.ask(undefined, { approvals: [{ id, approve }] });
    t.match(textOfEvents(events), /^The call of the tool `shell\/run` that waited .+ nobody approved it in time\.I listed it\.$/);
    t.strictSame(results(app, 1), ['The call was denied and did not run: nobody approved it in time.']);
  }
});

t.test('an interceptor that runs a turn again runs and reports an approved call once', async (t) => {
  const drained = async (events: AgentEvents) => {
    const all = [];
    for await (const batch of events) all.push(...batch);
    return all;
  };
  const interceptors: Record<string, Interceptor> = {
    async *drops(turn, next) {
      await drained(next(turn));
      yield* next(turn);
    },
    async *repeats(turn, next) {
      for (const event of await drained(next(turn))) if (event.type !== 'finished') yield [event];
      yield* next(turn);
    },
    async *races(turn, next) {
      const [, second] = await Promise.all([drained(next(turn)), drained(next(turn))]);
      yield second;
    },
  };
  for (const [name, interceptor] of Object.entries(interceptors)) {
    let isOn = false;
    const switched: Interceptor = (turn, next) => (isOn ? interceptor(turn, next) : next(turn));
    const app = await start({ steps: [list(), answerWith('One.'), answerWith('Two.')], interceptors: [switched] });
    const [{ code = '' } = {}] = asked(await app.ask('List it'));
    isOn = true;
    const events = await app.ask(`approve ${code}`);
    t.strictSame(app.ran, ['ls'], name);
    for (const type of ['tool-call', 'tool-result'])
      t.equal(events.filter((event) => event.type === type).length, 1, `${name}: ${type}`);
    for (const nth of [1, 2]) t.strictSame(results(app, nth), ['done'], name);
    isOn = false;
    const { messages } = await app.store.load({ project: 'default', agent: 'assistant', key: 's' });
    t.strictSame(
      messages.flatMap((message) => (message.role === 'tool' ? [message.content] : [])),
      ['done'],
      name,
    );
  }
});

t.test('a tool interceptor that changes an approved call asks again, with the arguments that would run', async (t) => {
  const changing: ToolInterceptor = (call, next) => next({ ...call, input: { command: `sudo ${call.input.command}` } });
  for (const [agent, times] of [
    [{}, 1],
    [{ approve: [] }, 0],
  ] as const) {
    const app = await start({ agent, toolInterceptors: { changing }, steps: [list(), answerWith('Done.'), answerWith('Yes.')] });
    const first = await app.ask('List it');
    if (times === 0) {
      t.strictSame(app.ran, ['sudo ls'], 'nobody was asked');
      continue;
    }
    const second = await app.ask(`approve ${asked(first)[0]?.code}`);
    t.strictSame(app.ran, []);
    t.match(textOfEvents(second), /^The tool `shell\/run` needs approval, with these arguments:\n`\{"command":"sudo ls"\}`\n/);
    t.match(asked(second), [{ call: { arguments: '{"command":"sudo ls"}' } }]);
    t.match(endOf(second), { type: 'finished', reason: 'stop' });
    t.not(asked(second)[0]?.code, asked(first)[0]?.code);
    const third = await app.ask(`approve ${asked(second)[0]?.code}`);
    t.equal(textOfEvents(third), 'Done.');
    t.strictSame(app.ran, ['sudo ls']);
    await app.ask('And?');
    t.strictSame(results(app, 2), ['done']);
  }
});

t.test('a request that decides twice about one call, or in another form, is refused', async (t) => {
  const app = await start();
  const [{ id = '' } = {}] = asked(await app.ask('List it'));
  const wrong: readonly unknown[] = [
    [
      { id, approve: true },
      { id, approve: false },
    ],
    [{ id, approve: 'yes' }],
    [{ id: 7, approve: true }],
    [null],
    'all',
  ];
  for (const approvals of wrong) {
    const events = await app.ask(undefined, { approvals: approvals as [] });
    t.match(endOf(events), { type: 'failed', failure: { code: 'invalid_request', param: 'approvals' } });
  }
  t.strictSame(app.ran, []);
  await app.ask(undefined, { approvals: [{ id, approve: true }] });
  t.strictSame(app.ran, ['ls']);
});
