import { channel, tracingChannel } from 'node:diagnostics_channel';
import { type HostView, ModelError, type ModelEvent } from '@plugboard/kernel';
import { type ModelCall, ModelInterceptors, TurnError, type Usage } from '@plugboard/kernel/contracts';
import { modelRequest, testModelCall } from '@plugboard/testing';
import t, { type Test } from 'tap';
import { startExporter } from './exporter.js';

type Fields = Readonly<Record<string, unknown>>;

/** An exporter, and operations as the server publishes them. */
async function measured(t: Test, host?: HostView) {
  const exporter = await startExporter(t, {}, host);
  const { clock, ctx } = exporter;
  const operation = (name: string, context: Fields, end: Fields, milliseconds = 0) => {
    const { start, asyncEnd } = tracingChannel(name);
    const published: object = { ...context };
    start.publish(published);
    clock.advance(milliseconds);
    asyncEnd.publish(Object.assign(published, end));
  };
  const intercept = ctx.contributed(ModelInterceptors);
  return {
    ...exporter,
    operation,
    turn: async (end: Fields, { name = 'assistant', inside = async () => {} } = {}) => {
      const { start, asyncEnd } = tracingChannel('plugboard.turn');
      const published: object = { turnId: 'turn_1', request: { target: { name } } };
      start.publish(published);
      await inside();
      clock.advance(3_000);
      asyncEnd.publish(Object.assign(published, end));
    },
    tool: (context: Fields, end: Fields) =>
      operation('plugboard.tool', { turn: { id: 'turn_1' }, entry: 'tools.clock', name: 'clock', ...context }, end, 250),
    /** Reads an answer through the interceptor. A function among the batches is called. */
    call: async (
      batches: readonly (readonly ModelEvent[] | (() => void))[],
      fields: Partial<ModelCall> = {},
      read = Infinity,
    ) => {
      const call = testModelCall({ turnId: 'turn_1', connection: 'fast', model: 'big-1', ...fields });
      async function* answer() {
        for (const batch of batches) {
          if (typeof batch === 'function') batch();
          else yield batch;
        }
      }
      let batchesRead = 0;
      for await (const _ of intercept(call, () => answer())) if (++batchesRead >= read) break;
    },
  };
}

const usage = (counts: Partial<Usage> = {}): Usage => ({
  promptTokens: 100,
  completionTokens: 20,
  cachedTokens: 40,
  cacheWriteTokens: 10,
  reasoningTokens: 5,
  ...counts,
});
const END: ModelEvent = { type: 'end', reason: 'stop' };

t.test('counts turns by agent and status, and measures how long they took and waited', async (t) => {
  const { turn, scrape } = await measured(t);
  await turn({ status: 'stop', usage: usage(), record: { queued: 1_500, duration: 3_000, steps: [], calls: [] } });
  await turn({ status: 'content_filter', usage: usage() });
  await turn({ status: 'content_filter' }); // a failure of the same name
  await turn({ status: 'abandoned' });
  await turn({}); // it ended without a terminal event
  const page = await scrape();
  const count = (status: string) => page.value('plugboard_turns_total', { agent: 'assistant', status });
  t.same(['stop', 'content_filter', 'abandoned', 'crashed'].map(count), [1, 2, 1, 1]);
  const durations = 'gen_ai_invoke_agent_duration_seconds';
  t.equal(page.value(`${durations}_sum`, { gen_ai_agent_name: 'assistant' }), 15);
  t.same(page.valuesOf(`${durations}_count`, 'error_type'), ['', 'abandoned', 'content_filter', 'crashed']);
  t.equal(page.value(`${durations}_count`, { error_type: 'content_filter' }), 1);
  t.equal(page.value('plugboard_turn_queue_seconds_sum', { agent: 'assistant' }), 1.5);
});

t.test('measures each attempt of a model call, and how many a turn makes', async (t) => {
  const { turn, call, tool, clock, scrape } = await measured(t);
  const late = () => clock.advance(500);
  const model = { gen_ai_operation_name: 'chat', gen_ai_request_model: 'big-1' };
  await call([late, [{ type: 'text', text: 'no turn began' }], late, [END]]);
  const first = await scrape();
  t.equal(first.value('gen_ai_client_inference_time_to_first_chunk_seconds_sum', model), 0.5);
  t.equal(first.value('gen_ai_client_inference_duration_seconds_sum', model), 1);
  await turn(
    { status: 'stop', usage: usage() },
    {
      inside: async () => {
        await call([[{ type: 'text', text: 'a' }], [END]]);
        await call([[END]], { attempt: 2 });
        tool({}, { isError: false });
        tool({}, { isError: true });
      },
    },
  );
  const page = await scrape();
  t.equal(page.value('gen_ai_client_inference_duration_seconds_count', model), 3);
  t.equal(page.value('gen_ai_invoke_agent_inference_calls_sum', { gen_ai_agent_name: 'assistant' }), 2);
  t.equal(page.value('gen_ai_invoke_agent_tool_calls_sum', { gen_ai_agent_name: 'assistant' }), 2);
});

t.test('the time to the first chunk is of streamed calls alone', async (t) => {
  const { call, scrape } = await measured(t);
  await call([[END]], { request: { ...modelRequest('Hi'), incremental: false } });
  const page = await scrape();
  t.equal(page.value('gen_ai_client_inference_duration_seconds_count'), 1);
  t.same(page.find('gen_ai_client_inference_time_to_first_chunk_seconds_count'), []);
});

t.test('counts the tokens that a model reports last, and no amount that is not one', async (t) => {
  const { call, scrape } = await measured(t);
  await call([[{ type: 'usage', usage: usage({ promptTokens: 1 }) }], [{ type: 'usage', usage: usage() }, END]]);
  await call([
    [{ type: 'usage', usage: usage({ promptTokens: -7, completionTokens: Number.NaN, cachedTokens: Infinity }) }, END],
  ]);
  await call([[END]]);
  const page = await scrape();
  const tokens = (kind: string) =>
    page.value(`gen_ai_client_inference_usage_${kind}_tokens_total`, { gen_ai_token_modality: 'unknown' });
  t.same(['input', 'output', 'cache_read_input', 'cache_write_input', 'reasoning_output'].map(tokens), [100, 20, 40, 20, 10]);
});

t.test('says why a model call has no end', async (t) => {
  const { call, scrape } = await measured(t);
  const fail = (error: Error) => () => {
    throw error;
  };
  const text: readonly ModelEvent[] = [{ type: 'text', text: 'a' }];
  const secret = 'sk-canary is wrong';
  await t.rejects(call([fail(new ModelError(secret, { code: 'rate_limited' }))]), { message: secret });
  await t.rejects(call([text, fail(new ModelError(secret))]));
  await t.rejects(call([fail(new TurnError('insufficient_quota', secret))])); // refused, and not sent
  await t.rejects(call([fail(new Error(secret))]));
  await call([text, text, [END]], {}, 1); // its reader leaves
  const left = AbortSignal.abort(new TurnError('timed_out', secret));
  await t.rejects(call([text, fail(new Error(secret))], { signal: left }));
  await call([text, [END]], {}, 2);
  const page = await scrape();
  const count = (error_type: string) => page.value('gen_ai_client_inference_duration_seconds_count', { error_type });
  const types = ['rate_limited', 'model_failed', 'crashed', 'cancelled', 'timed_out'];
  t.same(
    types.map(count),
    types.map(() => 1),
  );
  t.equal(page.find('gen_ai_client_inference_duration_seconds_count').length, 6, 'and one without an error');
  t.notMatch(page.text, 'canary');
});

t.test('measures tools by their name at the model', async (t) => {
  const { tool, scrape } = await measured(t);
  tool({}, { isError: false });
  tool({ name: 'files__read' }, { isError: true });
  tool({ name: 'files__write' }, { error: new Error('aborted') });
  tool({ name: 'files__delete' }, {}); // it waits for an approval
  tool({ name: 'invented', entry: '' }, { isError: true });
  channel('plugboard.tool.abandoned').publish({ entry: 'tools.files', turn: { id: 'turn_1' }, tool: 'write' });
  const page = await scrape();
  const durations = 'gen_ai_execute_tool_duration_seconds';
  t.same(page.valuesOf(`${durations}_count`, 'gen_ai_tool_name'), ['_other', 'clock', 'files__read', 'files__write']);
  t.equal(page.value(`${durations}_sum`, { gen_ai_tool_name: 'clock' }), 0.25);
  t.equal(page.value(`${durations}_count`, { error_type: 'tool_error' }), 3);
  t.equal(page.value('plugboard_tools_abandoned_total', { entry: 'tools.files' }), 1);
});

t.test('measures requests by route, and why they failed or broke off', async (t) => {
  const { operation, scrape } = await measured(t);
  const request = (context: Fields, end: Fields) =>
    operation('plugboard.http', { method: 'POST', route: '/v1/chat/completions', ...context }, end, 40);
  request({}, { status: 200, outcome: 'ok' });
  request({}, { status: 200, outcome: 'cancelled_by_client' });
  request({}, { status: 502, outcome: 'agent_error' });
  request({}, { status: undefined, outcome: 'cancelled_by_client' });
  request({ method: 'BREW', route: undefined }, { status: 405, outcome: 'client_error' });
  request({ method: 'GET', route: '/v1/live' }, { status: 101, outcome: 'ok' });
  const page = await scrape();
  const durations = 'http_server_request_duration_seconds';
  const counts = page.find(`${durations}_count`).map(({ labels, value }) => [Object.values(labels).join(' '), value] as const);
  t.same(
    new Map(counts),
    new Map([
      ['GET /v1/live 101', 1],
      ['POST /v1/chat/completions 200', 1],
      ['POST /v1/chat/completions 200 cancelled_by_client', 1],
      ['POST /v1/chat/completions 502 502', 1],
      ['POST /v1/chat/completions cancelled_by_client', 1],
      ['_OTHER _other 405', 1],
    ]),
  );
  t.ok(Math.abs(page.value(`${durations}_sum`) - 0.24) < 1e-9);
});

t.test('measures calls of the session store', async (t) => {
  const { operation, scrape } = await measured(t);
  operation('plugboard.store', { operation: 'append' }, {}, 2);
  operation('plugboard.store', { operation: 'append' }, { error: new Error('/var/db/canary: disk full') }, 2);
  operation('plugboard.store', { operation: 'load' }, { error: new TurnError('session_quarantined', 'closed') });
  const page = await scrape();
  const count = (labels: Record<string, string>) => page.value('plugboard_store_operation_seconds_count', labels);
  t.equal(count({ operation: 'append' }), 2);
  t.equal(count({ error_type: 'store_failed' }), 1);
  t.equal(count({ error_type: 'session_quarantined' }), 1);
  t.notMatch(page.text, 'canary');
});

t.test('adds up what calls cost, and counts those without a price', async (t) => {
  const { scrape } = await measured(t);
  const charge = (cost: string | undefined) =>
    channel('plugboard.charge').publish({ agent: 'assistant', model: 'fast', currency: 'EUR', cost });
  for (const cost of ['0.0000125', '1.5', '0', undefined, undefined]) charge(cost);
  const page = await scrape();
  const labels = { agent: 'assistant', model: 'fast', currency: 'EUR' };
  t.equal(page.value('plugboard_cost_total', labels), 1.5000125);
  t.equal(page.value('plugboard_unpriced_calls_total', labels), 2);
});

t.test('shows the limits, and the entries that work', async (t) => {
  const host: HostView = {
    version: '0.1.0',
    phase: 'running',
    stopRequested: new AbortController().signal,
    literal: () => undefined,
    entries: () => [
      { entry: 'transports.http', status: 'running', optional: false },
      { entry: 'tools.files', status: 'running', optional: true, health: { state: 'degraded', reason: 'its server is away' } },
      { entry: 'tools.notes', status: 'running', optional: true, health: { state: 'ok' } },
      { entry: 'models.local', status: 'disabled', optional: true, reason: 'canary' },
    ],
  };
  const { ctx, scrape } = await measured(t, host);
  const budget = ctx.budgets.create({ name: 'uploads', unit: 'bytes', limit: 100, setting: 'plugins.uploads.memory' });
  budget.reserve([], 30);
  budget.reserve([], 1_000);
  budget.reserve([], 1_000);
  const page = await scrape();
  const limit = (name: string) => page.value(`plugboard_limit_${name}`, { setting: 'plugins.uploads.memory' });
  t.same(['used', 'max', 'refused_total'].map(limit), [30, 100, 2]);
  t.equal(page.find('plugboard_limit_max', { setting: 'limits.memory' }).length, 1);
  const up = (entry: string) => page.value('plugboard_entry_up', { entry });
  t.same(['transports.http', 'tools.files', 'tools.notes', 'models.local'].map(up), [1, 0, 1, 0]);
  budget.release([], 30);
  const later = await scrape();
  t.equal(later.value('plugboard_limit_used', { setting: 'plugins.uploads.memory' }), 0);
  t.same(page.valuesOf('plugboard_build_info', 'version'), ['0.1.0']);
  t.equal(later.find('plugboard_limit_used').length, page.find('plugboard_limit_used').length);
});

t.test('OB-6 a label has at most 500 values, and one for all others', async (t) => {
  const { operation, tool, turn, scrape } = await measured(t);
  for (let number = 0; number < 10_000; number++) {
    operation('plugboard.http', { method: `M${number}`, path: `/p${number}`, route: undefined }, { status: 404 });
    tool({ name: `invented_${number}`, entry: '' }, { isError: true });
  }
  const before = (await scrape()).series;
  for (let number = 0; number < 10_000; number++) tool({ name: `invented_again_${number}`, entry: '' }, { isError: true });
  t.same((await scrape()).series, before);
  for (let number = 0; number < 600; number++) {
    tool({ name: `tool_${number}` }, { isError: false });
    await turn({ status: 'stop' }, { name: `agent_${number}` });
  }
  const page = await scrape();
  t.equal(page.valuesOf('plugboard_turns_total', 'agent').length, 501);
  t.equal(page.value('plugboard_turns_total', { agent: '_other' }), 100);
  t.equal(page.value('gen_ai_execute_tool_duration_seconds_count'), 20_600);
  t.ok(page.valuesOf('gen_ai_execute_tool_duration_seconds_count', 'gen_ai_tool_name').length <= 501);
});

t.test('a message that it does not understand is one log line, and no error of the server', async (t) => {
  const { ctx, turn, scrape } = await measured(t);
  const { start, asyncEnd } = tracingChannel('plugboard.turn');
  for (let time = 0; time < 3; time++) {
    const published = {};
    start.publish(published);
    asyncEnd.publish(published);
  }
  await turn({ status: 'stop' });
  t.equal((await scrape()).value('plugboard_turns_total'), 1);
  t.match(
    ctx.logs.filter(({ level }) => level === 'error'),
    [{ msg: 'the metrics miss a measurement', channel: 'tracing:plugboard.turn:asyncEnd' }],
  );
});
