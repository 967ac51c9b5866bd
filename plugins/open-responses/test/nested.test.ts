import type { AgentEvent } from '@plugboard/kernel';
import { NO_USAGE, type TurnRecord } from '@plugboard/kernel/contracts';
import t from 'tap';
import { type EncoderOptions, ResponseEncoder } from '../src/events/response-encoder.js';
import { ECHO } from './support/echo.js';
import { assertGrammar, type SentEvent } from './support/events.js';

const HEAD = { id: 'resp_abc', createdAt: 1000, model: 'helper', agent: 'helper', echo: ECHO };
const USAGE = { ...NO_USAGE, promptTokens: 30, completionTokens: 12 };
const FINISHED = { type: 'finished', reason: 'stop', usage: USAGE } as const;
const SHELL = { entry: 'shell', name: 'list' };

const step = (step: number) => ({ type: 'step', step, connection: 'fast' }) as const;
const text = (text: string) => ({ type: 'text', text }) as const;
const call = (id: string, name: string, tool = { entry: name, name }) =>
  ({ type: 'tool-call', id, name, arguments: '{"input":"a"}', tool }) as const;
const result = (id: string, isError = false) =>
  ({ type: 'tool-result', id, content: 'private', images: [], isError, milliseconds: 3 }) as const;
const nested = (call: string, agent: string, ...events: AgentEvent[]) => ({ type: 'nested', call, agent, events }) as const;

/** A turn whose call asks an agent, which asks another one, and runs a tool. */
const BATCHES: readonly (readonly AgentEvent[])[] = [
  [step(1), call('call_1', 'research')],
  [nested('call_1', 'researcher', { type: 'started', turnId: 'turn_2', agent: 'researcher' }, step(1))],
  [nested('call_1', 'researcher', { type: 'reasoning', text: 'Hm.' }, text('Let '), text('me look.'), call('call_2', 'reader'))],
  [nested('call_1', 'researcher', nested('call_2', 'reader', step(1), call('call_3', 'shell__list', SHELL)), text('And'))],
  [nested('call_1', 'researcher', nested('call_2', 'reader', result('call_3', true), text('Two files.'), FINISHED))],
  [nested('call_1', 'researcher', result('call_2'), step(2), text('Two.'), { ...FINISHED, limit: 'max_steps' })],
  [result('call_1'), step(2), text('There are two.')],
  [FINISHED],
];

function written(options: Partial<EncoderOptions> = {}, records: readonly TurnRecord[] = []): readonly SentEvent[] {
  const encoder = new ResponseEncoder(HEAD, {
    visibility: 'full',
    showsReasoning: true,
    extensions: true,
    now: () => 1,
    ...options,
  });
  const texts = encoder.begin('in_progress');
  for (const [index, batch] of BATCHES.entries()) texts.push(...encoder.write(batch, { record: records[index] }));
  const events = texts.map((json) => JSON.parse(json) as SentEvent);
  assertGrammar(events);
  return events;
}

t.test('AG-5 svc:nested names the call, the agent and what it does, down to the turns of its own calls', async (t) => {
  const events = written().filter(({ type }) => type === 'svc:nested');
  t.same(
    events.map(({ item_id, agent, event }) => [item_id, agent, event]),
    [
      ['mcp_abc_0', 'researcher', { type: 'step', step: 1, connection: 'fast' }],
      ['mcp_abc_0', 'researcher', { type: 'text', text: 'Let me look.' }],
      [
        'mcp_abc_0',
        'researcher',
        { type: 'tool_call', id: 'call_2', server_label: 'reader', name: 'reader', arguments: '{"input":"a"}' },
      ],
      ['call_2', 'reader', { type: 'step', step: 1, connection: 'fast' }],
      ['call_2', 'reader', { type: 'tool_call', id: 'call_3', server_label: 'shell', name: 'list', arguments: '{"input":"a"}' }],
      ['mcp_abc_0', 'researcher', { type: 'text', text: 'And' }],
      ['call_2', 'reader', { type: 'tool_result', id: 'call_3', is_error: true }],
      ['call_2', 'reader', { type: 'text', text: 'Two files.' }],
      ['call_2', 'reader', { type: 'end', reason: 'stop' }],
      ['mcp_abc_0', 'researcher', { type: 'tool_result', id: 'call_2', is_error: false }],
      ['mcp_abc_0', 'researcher', { type: 'step', step: 2, connection: 'fast' }],
      ['mcp_abc_0', 'researcher', { type: 'text', text: 'Two.' }],
      ['mcp_abc_0', 'researcher', { type: 'end', reason: 'max_steps' }],
    ],
  );
  t.match(events[0], { sequence_number: 6 }, 'numbered as all events are');
});

t.test('AG-5 nothing of a nested turn is in the response, or reaches a client that did not ask for it', async (t) => {
  for (const events of [
    written(),
    written({ extensions: false }),
    written({ visibility: 'names' }),
    written({ visibility: 'none' }),
  ]) {
    const { response } = events.at(-1) as SentEvent;
    t.notMatch(JSON.stringify(response), /look|files|call_|shell/);
    t.match(response?.output.at(-1), { content: [{ text: 'There are two.' }] });
  }
  for (const hidden of [{ extensions: false }, { visibility: 'names' }, { visibility: 'none' }] as const)
    t.notOk(
      written(hidden).some(({ type }) => type === 'svc:nested'),
      JSON.stringify(hidden),
    );
});

t.test('a nested turn that fails ends with the code of its failure', async (t) => {
  const encoder = new ResponseEncoder(HEAD, { visibility: 'full', showsReasoning: false, extensions: true, now: () => 1 });
  encoder.write([step(1), call('call_1', 'research')]);
  const failure = { code: 'model_failed', message: 'All models failed.', toolsRan: false } as const;
  const clientCall = { type: 'tool-call', id: 'call_8', name: 'weather', arguments: '{}' } as const; // it has none
  const [json = ''] = encoder.write([nested('call_1', 'researcher', clientCall, { type: 'failed', failure })]);
  t.match(JSON.parse(json), { type: 'svc:nested', event: { type: 'end', reason: 'model_failed' } });
  t.same(encoder.write([nested('call_9', 'researcher', text('late'))]), [], 'a call that has ended, or is hidden');
});

t.test('AG-5 svc:turn.progress has the record of a nested turn when its call is first shown and when it ends', async (t) => {
  type Call = TurnRecord['calls'][number];
  const inner: Call = {
    id: 'call_2',
    name: 'reader',
    tool: { entry: 'reader', name: 'reader' },
    step: 1,
    start: 5,
    state: 'cut',
  };
  const steps = [{ connection: 'fast', start: 3 }];
  const asking = (more: Partial<Call>, nestedCalls: readonly Call[] | undefined): Call => ({
    id: 'call_1',
    name: 'research',
    tool: { entry: 'research', name: 'research' },
    step: 1,
    start: 2,
    state: 'cut',
    ...more,
    ...(nestedCalls && { nested: { agent: 'researcher', usage: USAGE, steps, calls: nestedCalls } }),
  });
  const record = (call: Call): TurnRecord => ({ queued: 0, duration: 9, steps, calls: [call] });
  const records = BATCHES.map((_, index) => {
    if (index === 0) return record(asking({}, undefined));
    if (index < 6) return record(asking({}, [inner]));
    return record(asking({ state: 'completed', duration: 7 }, [inner]));
  });
  const progress = written({}, records).filter(({ type }) => type === 'svc:turn.progress');
  const calls = progress.flatMap(({ calls }) => calls as Record<string, unknown>[]);
  t.equal(calls.length, 2, 'not with every event of it');
  t.notOk('nested' in (calls[0] ?? {}));
  t.match(calls[1], {
    item_id: 'mcp_abc_0',
    status: 'completed',
    nested: {
      agent: 'researcher',
      usage: { total_tokens: 42 },
      steps: [{ connection: 'fast', start_ms: 3 }],
      calls: [{ item_id: 'call_2', server_label: 'reader', status: 'incomplete', start_ms: 5 }],
    },
  });
  const late = written(
    {},
    BATCHES.map(() => record(asking({}, [inner]))),
  );
  const [first] = late.filter(({ type }) => type === 'svc:turn.progress');
  t.match(
    first,
    { calls: [{ status: 'in_progress', nested: { calls: [{ status: 'in_progress' }] } }] },
    'of a watcher that comes late',
  );
  t.notMatch(JSON.stringify(written({ visibility: 'names' }, records)), /researcher|reader/);
});
