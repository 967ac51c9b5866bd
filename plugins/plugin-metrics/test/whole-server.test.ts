import { tracingChannel } from 'node:diagnostics_channel';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { eventually } from '@plugboard/testing';
import t from 'tap';
import { LiveSocket } from '../../../test/support/live-socket.js';
import { rounds } from '../../../test/support/rounds.js';
import { ASSISTANT, MODEL_KEY, saying, TestServer, TRANSPORTS } from '../../../test/support/test-server.js';
import { readTreasure, toolFixtures, WITH_TOOLS } from '../../../test/support/with-tools.js';
import { METRICS, MeasuredServer } from './measured-server.js';

const SURFACES = `${TRANSPORTS}  responses: {}\n  websocket: {}\n  messages: {}\n`;

t.test('measures a turn on every surface, plain and streamed', async (t) => {
  const server = await MeasuredServer.start(t, SURFACES + ASSISTANT + METRICS);
  const { app } = server;
  const body = { model: 'assistant', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] };
  const answer = { text: 'Hello there.', usage: { promptTokens: 50, completionTokens: 7, cachedTokens: 30 } };
  app.models.enqueue(...Array.from({ length: 7 }, () => answer));
  await app.chat(saying('Hi'));
  await app.stream(saying('Hi'));
  await app.request('POST', '/v1/responses', {}, { model: 'assistant', input: 'Hi' });
  await app.request('POST', '/v1/responses', {}, { model: 'assistant', input: 'Hi', stream: true });
  await app.request('POST', '/v1/messages', {}, body);
  await app.request('POST', '/v1/messages', {}, { ...body, stream: true });
  const socket = await LiveSocket.open(t, app);
  await socket.ask({ model: 'assistant', input: 'Hi' });

  const page = await server.until((page) => page.value('http_server_request_duration_seconds_count') >= 7);
  t.equal(page.value('plugboard_turns_total', { agent: 'assistant', status: 'stop' }), 7);
  t.equal(page.value('gen_ai_invoke_agent_duration_seconds_count', { gen_ai_agent_name: 'assistant' }), 7);
  t.equal(page.value('gen_ai_invoke_agent_inference_calls_sum', { gen_ai_agent_name: 'assistant' }), 7);
  t.equal(page.value('plugboard_turn_queue_seconds_count', { agent: 'assistant' }), 7);
  const model = { gen_ai_operation_name: 'chat', gen_ai_provider_name: 'openai', gen_ai_request_model: 'big-1' };
  t.equal(page.value('gen_ai_client_inference_duration_seconds_count', model), 7);
  t.equal(page.value('gen_ai_client_inference_usage_input_tokens_total', model), 350);
  t.equal(page.value('gen_ai_client_inference_usage_output_tokens_total', model), 49);
  t.equal(page.value('gen_ai_client_inference_usage_cache_read_input_tokens_total', model), 210);
  t.ok(page.value('gen_ai_client_inference_time_to_first_chunk_seconds_count', model) >= 4);
  const requests = (route: string, status: string) =>
    page.value('http_server_request_duration_seconds_count', { http_route: route, http_response_status_code: status });
  t.equal(requests('/v1/chat/completions', '200'), 2);
  t.equal(requests('/v1/responses', '200'), 2);
  t.equal(requests('/v1/responses', '101'), 1, 'an upgrade ends when it is accepted');
  t.equal(requests('/v1/messages', '200'), 2);
  t.equal(page.value('plugboard_entry_up', { entry: 'transports.http' }), 1);
  t.ok(page.value('plugboard_limit_max', { setting: 'limits.runningTurns' }) > 0);
  t.match(page.valuesOf('plugboard_build_info', 'version'), [/^\d+\.\d+\.\d+$/]);
});

t.test('measures tools, retries, and turns that fail or whose caller leaves', async (t) => {
  const server = await MeasuredServer.start(t, WITH_TOOLS + METRICS, toolFixtures);
  const { app } = server;
  const clock = { name: 'clock', arguments: {} };
  const unknown = { name: 'no_such_tool', arguments: {} };
  app.models.enqueue(
    { toolCalls: [readTreasure, { ...clock, id: 'a' }, { ...unknown, id: 'b' }] },
    { status: 500 },
    { text: 'Done.' },
  );
  await app.chat(saying('Go'));
  app.models.enqueue({ status: 401 });
  await app.chat(saying('Go'));
  const never = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['Half', never.promise] });
  const stream = await app.open(saying('Go'));
  await stream.until('Half');
  stream.leave();

  const page = await server.turns(3);
  const turns = (status: string) => page.value('plugboard_turns_total', { agent: 'assistant', status });
  t.same(['stop', 'model_failed', 'abandoned'].map(turns), [1, 1, 1]);
  const calls = (error_type: string) => page.value('gen_ai_client_inference_duration_seconds_count', { error_type });
  t.equal(page.value('gen_ai_client_inference_duration_seconds_count'), 5);
  t.equal(calls('abandoned'), 1);
  t.ok(calls('model_failed') + calls('overloaded') >= 2);
  t.equal(page.value('gen_ai_invoke_agent_inference_calls_sum', { gen_ai_agent_name: 'assistant' }), 5);
  t.equal(page.value('gen_ai_invoke_agent_tool_calls_sum', { gen_ai_agent_name: 'assistant' }), 3);
  t.same(page.valuesOf('gen_ai_execute_tool_duration_seconds_count', 'gen_ai_tool_name'), [
    '_other',
    'clock',
    'files__read_text_file',
  ]);
  const broken = await server.until(
    (page) => page.find('http_server_request_duration_seconds_count', { error_type: 'cancelled_by_client' }).length > 0,
  );
  t.equal(broken.value('http_server_request_duration_seconds_count', { error_type: '502' }), 1);
});

t.test('OB-6 wrong models, paths, methods and users add no series', async (t) => {
  const yaml = `${TRANSPORTS}models: { demo: {} }\nagents: { assistant: { model: demo } }\n${METRICS}`;
  const server = await MeasuredServer.start(t, yaml);
  const { app } = server;
  const attempts = [
    (name: string) => app.chat(saying('Hi', { model: name })),
    (name: string) => app.get(`/${name}`),
    (name: string) => app.get(`/v1/conversations/${name}`),
    (name: string) =>
      app.request(
        name
          .slice(0, 20)
          .toUpperCase()
          .replaceAll(/[^A-Z]/g, 'X'),
        '/v1/models',
      ),
    (name: string) => app.chat(saying('Hi', { user: name, metadata: { name } }), { 'x-request-id': name, 'user-agent': name }),
  ];
  const round = async (from: number, count: number) => {
    for (let number = from; number < from + count; number += 50) {
      const names = Array.from({ length: 50 }, (_, at) => `name-${number + at}`);
      await Promise.all(names.map((name, at) => attempts[at % attempts.length]?.(name).catch(() => undefined)));
    }
  };
  await round(0, 50);
  const requests = (page: { value(name: string): number }) => page.value('http_server_request_duration_seconds_count');
  const before = await server.until((page) => requests(page) >= 40);
  await round(50, rounds({ short: 1_000, long: 10_000, soak: 10_000 }));
  const after = await server.until((page) => requests(page) >= requests(before) * 10);
  t.same(after.series, before.series);
  t.notMatch(after.text, 'name-');
});

t.test('OB-13 no secret, header, user or message is on the page', async (t) => {
  const token = 'canary-token-of-the-caller';
  const yaml = `${SURFACES}auth: { bearer: { tokens: [{ name: canary-name, project: default, token: ${token} }] } }
${ASSISTANT}plugins: { metrics: { port: 0, token: canary-token-of-metrics } }\n`;
  const server = await MeasuredServer.start(t, yaml, { env: { MODEL_KEY: 'sk-canary-of-the-model' } });
  const { app } = server;
  const headers = { authorization: `Bearer ${token}`, 'x-request-id': 'canary-request', 'user-agent': 'canary-agent' };
  app.models.enqueue(
    { text: 'canary in the answer' },
    { status: 401, body: { error: { message: 'the key sk-canary-of-the-model is wrong' } } },
  );
  const said = saying('canary in a message', { user: 'canary-user', session_id: 'canary-session' });
  await app.chat(said, headers);
  await app.chat(said, headers);
  await app.chat(said, { authorization: 'Bearer canary-of-a-stranger' });
  await app.get('/canary-path?canary=query', headers);
  const scrape = () => server.scrape({ authorization: 'Bearer canary-token-of-metrics' });
  await eventually(async () => (await scrape()).value('http_server_request_duration_seconds_count') >= 4);
  const page = await scrape();
  t.equal(page.value('plugboard_turns_total'), 2);
  t.notMatch(page.text, /canary/i);
  t.notMatch(page.text, MODEL_KEY);
  t.equal((await fetch(server.address)).status, 401);
});

t.test('is scraped while turns run, and by a client that hangs, without an effect on them', async (t) => {
  const server = await MeasuredServer.start(t, TRANSPORTS + ASSISTANT + METRICS);
  const { app } = server;
  const { port } = new URL(server.address);
  const hanging = Array.from({ length: 5 }, () => connect(Number(port), '127.0.0.1'));
  t.teardown(() => hanging.forEach((socket) => void socket.destroy()));
  for (const [at, socket] of hanging.entries())
    socket.write(at % 2 === 0 ? 'GET /metr' : 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const gate = Promise.withResolvers<void>();
  app.models.enqueue(...Array.from({ length: 20 }, () => ({ text: ['a', gate.promise, 'b'] })));
  const turns = Array.from({ length: 20 }, () => app.stream(saying('Hi')));
  await eventually(() => app.models.requests.length === 20);
  const during = await server.until((page) => page.value('plugboard_limit_used', { setting: 'limits.runningTurns' }) === 20);
  t.equal(during.value('plugboard_turns_total'), 0);
  gate.resolve();
  for (const turn of await Promise.all(turns)) t.equal(turn.text, 'ab');
  t.equal((await server.turns(20)).value('plugboard_turns_total'), 20);
});

t.test('a reload replaces the entry: one port, one subscriber, one series for each', async (t) => {
  const base = TRANSPORTS + ASSISTANT;
  const server = await MeasuredServer.start(t, base + METRICS);
  const { app } = server;
  const reload = async (yaml: string) => {
    await writeFile(join(app.started.folder, 'plugboard.yaml'), yaml);
    return app.started.server.reload();
  };
  app.models.enqueue({ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' });
  await app.chat(saying('Hi'));
  await server.turns(1);
  const old = server.address;

  t.equal((await reload(`${base}  other: { model: fast }\n${METRICS}`)).refused, undefined);
  t.equal(server.address, old, 'a change of something else leaves it as it is');
  t.equal((await server.scrape()).value('plugboard_turns_total'), 1);

  t.equal((await reload(`${base}plugins: { metrics: { port: 0, path: /numbers } }\n`)).refused, undefined);
  t.not(server.address, old);
  await t.rejects(fetch(old), 'its port is free');
  await app.chat(saying('Hi'));
  const page = await server.turns(1);
  t.equal(page.value('plugboard_turns_total'), 1, 'counted once');
  t.equal(page.value('gen_ai_client_inference_duration_seconds_count'), 1);
  t.equal(page.find('plugboard_entry_up', { entry: 'plugins.metrics' }).length, 1);
  t.equal(page.find('process_cpu_seconds_total').length, 1);

  const { port } = new URL(app.url);
  const refused = await reload(`${base}plugins: { metrics: { port: ${port} } }\n`);
  t.match(String(refused.refused?.message), /is in use by another program/);
  t.equal((await fetch(server.address)).status, 200, 'a change that cannot start leaves the earlier one');

  const last = server.address;
  t.equal((await reload(base)).refused, undefined);
  await t.rejects(fetch(last));
  t.equal(tracingChannel('plugboard.turn').hasSubscribers, false);
  await app.chat(saying('Hi'));
});

t.test('a server without the entry has no subscriber', async (t) => {
  await TestServer.start(t, TRANSPORTS + ASSISTANT);
  for (const name of ['http', 'turn', 'step', 'tool', 'summary', 'store']) {
    t.equal(tracingChannel(`plugboard.${name}`).hasSubscribers, false, name);
  }
});
