import * as openai7 from 'openai';
import * as openai6 from 'openai-6';
import t from 'tap';
import { TestServer, TRANSPORTS } from '../support/test-server.js';
import { TOKENS, tokens } from '../support/tokens.js';
import { readTreasure, toolFixtures, WITH_TOOLS } from '../support/with-tools.js';

/** The two lines of the SDK that are in use; of the older one we use what the newer one has too. */
const libraries = { 'openai 7': openai7, 'openai 6': openai6 as unknown as typeof openai7 };

const server = await TestServer.start(t, WITH_TOOLS, toolFixtures);
const closed = await TestServer.start(
  t,
  `${TRANSPORTS}
models:
  fast: { use: openai, baseUrl: "\${MODEL_URL}", model: big-1 }
agents:
  assistant: { model: fast }
  billing: { model: fast, project: acme }
projects: { acme: {} }
${TOKENS}`,
  { files: tokens },
);

const messages = [{ role: 'user' as const, content: 'Where is the treasure?' }];
const hunt = [{ toolCalls: [readTreasure] }, { text: ['Under', ' the', ' oak.'] }];
const request = { model: 'assistant', messages };

/** What a call is rejected with. */
async function failure(asking: PromiseLike<unknown>): Promise<InstanceType<typeof openai7.APIError>> {
  try {
    await asking;
  } catch (error) {
    return error as InstanceType<typeof openai7.APIError>;
  }
  throw new Error('it did not fail');
}

for (const [library, { OpenAI, ...sdk }] of Object.entries(libraries)) {
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'any' });

  t.test(`C-180 ${library}: create`, async (t) => {
    server.models.enqueue(...hunt);
    const completion = await client.chat.completions.create(request);
    t.equal(completion.choices[0]?.message.content, 'Under the oak.');
    t.equal(completion.choices[0]?.finish_reason, 'stop');
    t.match(completion._request_id, /^req_[0-9a-f]{32}$/);
    t.equal(completion.usage?.total_tokens, (completion.usage?.prompt_tokens ?? 0) + (completion.usage?.completion_tokens ?? 0));
  });

  t.test(`C-180 ${library}: a stream, chunk by chunk`, async (t) => {
    server.models.enqueue(...hunt);
    const stream = await client.chat.completions.create({ ...request, stream: true, stream_options: { include_usage: true } });
    let text = '';
    let tokens = 0;
    const reasons: (string | null)[] = [];
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      tokens += chunk.usage?.total_tokens ?? 0;
      reasons.push(...chunk.choices.map(({ finish_reason }) => finish_reason));
    }
    t.equal(text, 'Under the oak.');
    t.strictSame(reasons.filter(Boolean), ['stop']);
    t.ok(tokens > 0);
  });

  t.test(`C-180 ${library}: the helper .stream()`, async (t) => {
    server.models.enqueue(...hunt);
    const deltas: string[] = [];
    const stream = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
    stream.on('content', (delta) => deltas.push(delta));
    const completion = await stream.finalChatCompletion();
    t.strictSame(deltas, ['Under', ' the', ' oak.']);
    t.match(completion, {
      choices: [{ message: { role: 'assistant', content: 'Under the oak.' }, finish_reason: 'stop' }],
      usage: { total_tokens: Number },
    });
    t.equal(await stream.finalContent(), 'Under the oak.');
  });

  t.test(`C-104 C-180 ${library}: the helper .stream() with a tool of the caller`, async (t) => {
    server.models.enqueue({ toolCalls: [{ name: 'weather', arguments: ['{"city"', ':"Par', 'is"}'] }] });
    const weather = { type: 'function' as const, function: { name: 'weather', parameters: { type: 'object' } } };
    const pieces: string[] = [];
    const stream = client.chat.completions.stream({ ...request, model: 'fast', tools: [weather] });
    stream.on('tool_calls.function.arguments.delta', ({ arguments_delta: piece }) => pieces.push(piece));
    const completion = await stream.finalChatCompletion();
    t.strictSame(pieces.filter(Boolean), ['{"city"', ':"Par', 'is"}']);
    t.match(completion.choices[0], {
      message: { tool_calls: [{ function: { name: 'weather', arguments: '{"city":"Paris"}' } }] },
      finish_reason: 'tool_calls',
    });
  });

  t.test(`C-180 ${library}: models are listed and retrieved`, async (t) => {
    const ids: string[] = [];
    for await (const model of client.models.list()) ids.push(model.id);
    t.strictSame(ids, ['assistant', 'bare', 'fast']);
    t.match(await client.models.retrieve('assistant'), { id: 'assistant', object: 'model', owned_by: 'svc:agent' });
    await t.rejects(client.models.retrieve('team/agent one'), { status: 404, code: 'model_not_found' });
  });

  t.test(`C-180 ${library}: abort`, async (t) => {
    const gate = Promise.withResolvers<void>();
    t.teardown(() => gate.resolve());
    const number = server.models.requests.length + 1;
    server.models.enqueue({ text: ['Once', gate.promise] });
    const stream = await client.chat.completions.create({ ...request, stream: true });
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) stream.controller.abort();
    t.equal(await (await server.models.received(number)).ended, 'aborted');

    server.models.enqueue({ before: gate.promise });
    const abort = new AbortController();
    const asking = client.chat.completions.create(request, { signal: abort.signal });
    const asked = await server.models.received(number + 1);
    abort.abort();
    t.type(await failure(asking), sdk.APIUserAbortError);
    t.equal(await asked.ended, 'aborted');
  });

  t.test(`C-180 ${library}: a session is selected by body or header`, async (t) => {
    const session = `talk with ${library}`;
    const say = (content: string) => ({ model: 'bare', messages: [{ role: 'user' as const, content }] });
    await client.chat.completions.create({ ...say('One'), session_id: session } as ReturnType<typeof say>);
    await client.chat.completions.create(say('Two'), { headers: { 'X-Session-Id': session } });
    const stream = client.chat.completions.stream(say('Three'), { headers: { 'X-Session-Id': session } });
    t.equal(await stream.finalContent(), 'Three');
    t.strictSame(
      server.asked.messages.map(({ content }) => content),
      ['One', 'One', 'Two', 'Two', 'Three'],
    );
  });

  t.test(`C-171 C-180 ${library}: each error has the right class`, async (t) => {
    const clientWith = (apiKey: string) => new OpenAI({ baseURL: `${closed.url}/v1`, apiKey, maxRetries: 0 });
    const requestID = /^req_[0-9a-f]{32}$/;
    const client = clientWith('token-of-acme');
    for (const stream of [false, true]) {
      const create = (by: typeof client, fields: object = {}) =>
        failure(by.chat.completions.create({ ...request, model: 'billing', stream, ...fields }));

      const unknown = await create(clientWith('wrong'));
      t.type(unknown, sdk.AuthenticationError);
      t.match(unknown, { status: 401, type: 'invalid_request_error', code: 'invalid_api_key', requestID });

      const forbidden = await create(client, { model: 'assistant' });
      t.type(forbidden, sdk.PermissionDeniedError);
      t.match(forbidden, { status: 403, type: 'svc_error', code: undefined, requestID });

      const unresolved = await create(client, { model: 'nobody' });
      t.type(unresolved, sdk.BadRequestError);
      t.match(unresolved, { status: 400, type: 'svc_error', code: undefined, requestID });

      const wrong = await create(client, { temperature: 3 });
      t.type(wrong, sdk.BadRequestError);
      t.match(wrong, {
        status: 400,
        type: 'invalid_request_error',
        code: 'decimal_above_max_value',
        param: 'temperature',
        message: /^400 Invalid 'temperature'/,
        requestID,
      });

      closed.models.enqueue({ status: 400 });
      const failed = await create(client);
      t.type(failed, sdk.InternalServerError);
      t.match(failed, { status: 502, type: 'svc_error', code: undefined, requestID });
    }

    closed.models.enqueue({ text: ['Half', ' of it'], cut: { afterEvents: 2 } });
    const stream = client.chat.completions.stream({ ...request, model: 'billing' });
    const broken = await failure(stream.finalChatCompletion());
    t.type(broken, sdk.APIError);
    t.match(broken, { status: undefined, type: 'svc_error', message: /closed the connection/ });
  });

  t.test(`C-132 C-180 ${library}: a failed turn of a session is not retried`, async (t) => {
    const number = server.models.requests.length;
    server.models.enqueue({ status: 400 });
    t.type(await failure(client.chat.completions.create({ ...request, user: library })), sdk.InternalServerError);
    t.equal(server.models.requests.length, number + 1);
  });
}
