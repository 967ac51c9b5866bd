import type { Interceptor, ToolInterceptor } from '@plugboard/kernel';
import t from 'tap';
import { answerWith, callTools, textOfEvents } from '../../harness.js';
import { asked, results, start } from './support.js';

t.test('an interceptor postpones a call, and runs again after the approval', async (t) => {
  const seen: string[] = [];
  const guard: ToolInterceptor = (call, next) => {
    seen.push('guard');
    if (call.input.command === 'rm') call.postpone();
    return next(call);
  };
  const steps = [callTools(['shell__run', { command: 'rm' }]), answerWith('Removed.')];
  const app = await start({ steps, agent: { approve: [] }, toolInterceptors: { guard } });
  const events = await app.ask('Remove it');
  t.match(
    events.map(({ type }) => type),
    ['started', 'step', 'usage', 'tool-call', 'approval', 'text', 'finished'],
  );
  t.strictSame(app.ran, []);
  await app.ask(`approve ${asked(events)[0]?.code}`);
  t.strictSame([app.ran, seen], [['rm'], ['guard', 'guard']]);

  const stateless = await start({ steps, agent: { approve: [] }, toolInterceptors: { guard } });
  await stateless.ask('Remove it', { session: undefined });
  t.match(results(stateless, 1), [/can only wait for it in a session/], 'a call that cannot wait is refused');
});

t.test('an interceptor that postpones too late, or catches the error, runs nothing twice', async (t) => {
  const steps = [callTools(['shell__run', { command: 'rm' }]), answerWith('Done.')];
  const late: ToolInterceptor = async (call, next) => {
    const output = await next(call);
    call.postpone();
    return output;
  };
  const app = await start({ steps, agent: { approve: [] }, toolInterceptors: { late } });
  t.strictSame(asked(await app.ask('Remove it')), []);
  t.strictSame(app.ran, ['rm']);
  t.match(
    app.lines.find(({ msg }) => msg === 'a tool interceptor failed'),
    { err: { message: /after the tool had started/ } },
  );

  const caught: ToolInterceptor = async (call, next) => {
    try {
      call.postpone();
    } catch {
      return next(call).catch(() => 'never mind');
    }
    return next(call);
  };
  const careless = await start({ steps, agent: { approve: [] }, toolInterceptors: { caught } });
  t.equal(asked(await careless.ask('Remove it')).length, 1);
  t.strictSame(careless.ran, []);
});

t.test('an interceptor that runs a turn again: the text is about the calls that readers have received', async (t) => {
  const again: Interceptor = async function* (turn, next) {
    for await (const _ of next(turn));
    yield* next(turn);
  };
  let isOn = true;
  const switched: Interceptor = (turn, next) => (isOn ? again(turn, next) : next(turn));
  const calls = ['first', 'second'].map((command) => callTools(['shell__run', { command }]));
  const app = await start({ steps: [...calls, answerWith('Done.')], interceptors: [switched] });
  const events = await app.ask('Run it');
  const [{ code = '' } = {}, ...others] = asked(events);
  t.strictSame(others, []);
  t.match(textOfEvents(events), /"command":"second"/);
  t.notMatch(textOfEvents(events), /first/);
  isOn = false;
  await app.ask(`approve ${code}`);
  t.strictSame(app.ran, ['second']);
});
