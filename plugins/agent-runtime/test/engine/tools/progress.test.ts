import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { AgentEvent } from '@plugboard/kernel';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { ProgressReports } from '../../../src/engine/tools/progress.js';
import { answerWith, callTools, collect, request, ScriptedModel, singleTool, startRuntime } from '../../harness.js';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** Large texts may be outside of the heap. */
function inUse(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

function reportsOf(events: readonly AgentEvent[]) {
  return events.flatMap((event) => (event.type === 'tool-progress' ? [event.message] : []));
}

t.test('S-75 a report has 1,024 characters at most, and a call 100 of them in a second', async (t) => {
  const clock = new ManualClock();
  const events: AgentEvent[] = [];
  const { report } = new ProgressReports('call_1', clock, (event) => events.push(event));
  report('x'.repeat(10_000_000), 0.5);
  report(`${'x'.repeat(1022)}\u{1f600}${'x'.repeat(9)}`);
  t.match(reportsOf(events), [/^x{1023}…$/, /^x{1022}\ufffd…$/]);
  for (let index = 0; index < 5000; index++) report(`report ${index}`);
  t.equal(events.length, 100);
  clock.advance(1000);
  report('the next second');
  t.match(events.at(-1), { message: 'the next second', id: 'call_1' });
});

t.test('S-75 a reader that does not keep up gets the latest reports of each call', async (t) => {
  const ends = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const chatty = singleTool(async (_, { progress }) => {
    for (let index = 1; index <= 90; index++) progress(`report ${index}`);
    begun.resolve();
    await ends.promise;
    return 'done';
  });
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['chatty'] } },
    models: { fast: new ScriptedModel([callTools(['chatty', {}]), answerWith('ok')]) },
    tools: { chatty },
  });
  const events = collect(runtime.run(request(target())));
  await begun.promise;
  ends.resolve();
  const reports = reportsOf(await events);
  t.equal(reports.length, 16);
  t.equal(reports.at(-1), 'report 90');
});

t.test('S-75 what is left of a long text does not keep the rest of it in memory', async (t) => {
  const { runtime, target } = await startRuntime({
    agents: { assistant: { model: 'fast', tools: ['long'] } },
    models: { fast: new ScriptedModel((_, number) => (number % 2 === 1 ? callTools(['long', {}]) : answerWith('ok'))) },
    tools: {
      long: singleTool((_, { progress }) => {
        const text = Buffer.alloc(16 * 2 ** 20, 'x').toString('latin1');
        progress(text);
        return text;
      }),
    },
  });
  const kept: unknown[] = [await collect(runtime.run(request(target())))];
  const before = inUse();
  for (let turn = 0; turn < 3; turn++) kept.push(await collect(runtime.run(request(target()))));
  const grown = inUse() - before;
  t.ok(grown < 8 * 2 ** 20, `${grown} bytes for the ${kept.length - 1} results`);
});
