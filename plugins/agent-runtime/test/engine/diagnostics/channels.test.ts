import { tracingChannel } from 'node:diagnostics_channel';
import type { TurnRecord } from '@plugboard/kernel/contracts';
import t, { type Test } from 'tap';
import { answerWith, callTools, collect, request, ScriptedModel, singleTool, startRuntime } from '../../harness.js';

type Context = Readonly<Record<string, unknown>>;

/** Subscribes to a channel until the test is over. */
function subscribe(t: Test, name: string) {
  const channel = tracingChannel(name);
  const started: Context[] = [];
  const ended: Context[] = [];
  const handlers = {
    start: (context: unknown) => void started.push({ ...(context as Context) }),
    asyncEnd: (context: unknown) => void ended.push(context as Context),
    end: () => {},
    asyncStart: () => {},
    error: () => {},
  };
  channel.subscribe(handlers);
  t.teardown(() => channel.unsubscribe(handlers));
  return { started, ended };
}

const looking = () => ({
  agents: { assistant: { model: 'fast', tools: ['look'] } },
  models: { fast: new ScriptedModel([callTools(['look', {}]), answerWith('Found.')]) },
  tools: { look: singleTool(() => 'found') },
});

t.test('a turn begins with the id that its events have, and ends with its record', async (t) => {
  const { started, ended } = subscribe(t, 'plugboard.turn');
  const app = await startRuntime(looking());
  const asked = request(app.target(), { connectionId: 'req_socket' });
  const events = await collect(app.runtime.run(asked));
  const [first] = events;
  t.equal(first?.type, 'started');
  t.match(started, [{ turnId: first?.type === 'started' && first.turnId, request: { connectionId: 'req_socket' } }]);
  t.match(ended, [{ status: 'stop', usage: { promptTokens: 20 } }]);
  const record = ended[0]?.record as TurnRecord;
  t.match(record, { queued: 0, reason: 'stop', steps: [{ connection: 'fast' }, { connection: 'fast' }] });
  t.match(record.calls, [{ name: 'look', state: 'completed', step: 1 }]);
});

t.test('a turn that fails ends with its code and the record of what it did', async (t) => {
  const { ended } = subscribe(t, 'plugboard.turn');
  const app = await startRuntime({ models: { fast: new ScriptedModel([[new Error('a defect')]]) } });
  await collect(app.runtime.run(request(app.target())));
  t.match(ended, [{ status: 'crashed', record: { reason: 'failed', steps: [] } }]);
});

t.test('a turn that is refused before it runs ends without a record', async (t) => {
  const { started, ended } = subscribe(t, 'plugboard.turn');
  const app = await startRuntime(looking());
  const target = app.target();
  Object.assign(app.host, { phase: 'stopping' });
  await collect(app.runtime.run(request(target)));
  t.match(started, [{ turnId: /^turn_/ }]);
  t.match(ended, [{ status: 'draining', record: undefined }]);
});

t.test('a tool call has its names and arguments, and at the end its result, also of an unknown tool', async (t) => {
  const { started, ended } = subscribe(t, 'plugboard.tool');
  const script = [callTools(['look', {}], ['nothing', {}]), answerWith('Found.')];
  const app = await startRuntime({ ...looking(), models: { fast: new ScriptedModel(script) } });
  await collect(app.runtime.run(request(app.target())));
  t.match(started, [
    { name: 'look', arguments: '{}', entry: 'look', tool: 'only' },
    { name: 'nothing', arguments: '{}', entry: '', tool: 'nothing' },
  ]);
  const end = (name: string) => ended.find((context) => context.name === name);
  t.match(end('look'), { isError: false, content: 'found' });
  t.match(end('nothing'), { isError: true, content: /There is no tool "nothing"/ });
});
