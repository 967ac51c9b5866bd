import { createServer } from 'node:net';
import { ModelServer } from '@plugboard/testing';
import t from 'tap';
import { connect, open, readAll, readError, STOP, textEvent, WHOLE } from '../connection.js';

t.test('R-030 an unreachable model server is retryable, and its address is not shown', async (t) => {
  const refused = connect(t, { baseUrl: await ModelServer.refusedUrl() });
  t.match(await readError(refused), {
    name: 'ModelError',
    message: /^the model server refused the connection; check that it is running and that baseUrl is correct\.$/,
    retryable: true,
    cause: { code: 'ECONNREFUSED' },
  });
  const unknown = await readError(connect(t, { baseUrl: 'http://nowhere.invalid/v1' }));
  t.match(unknown, {
    message: /^the name of the model server could not be resolved \((ENOTFOUND|EAI_AGAIN)\)\.$/,
    retryable: true,
  });
});

t.test('a connect timeout or a TLS error is retryable', async (t) => {
  const silent = createServer().listen(0, '127.0.0.1');
  t.teardown(() => silent.close());
  await new Promise((resolve) => silent.once('listening', resolve));
  const { port } = silent.address() as { port: number };
  const slow = connect(t, { baseUrl: `https://127.0.0.1:${port}`, connectTimeout: '1ms' });
  t.match(await readError(slow), {
    message: 'connecting to the model server took longer than 1ms (connectTimeout).',
    retryable: true,
  });

  const { server } = await open(t);
  const plainHttp = connect(t, { baseUrl: server.url.replace('http:', 'https:') });
  t.match(await readError(plainHttp), {
    message: /^the TLS connection to the model server failed \(\w+\)\.$/,
    retryable: true,
  });
});

t.test('a closed connection or invalid HTTP counts as no answer', async (t) => {
  const { server, ...connection } = await open(t);
  server.enqueue({ hangUp: true });
  t.match(await readError(connection), { message: 'the model server closed the connection without an answer.', retryable: true });

  const rude = createServer((socket) => socket.end('SSH-2.0-rude\r\n')).listen(0, '127.0.0.1');
  t.teardown(() => rude.close());
  await new Promise((resolve) => rude.once('listening', resolve));
  const { port } = rude.address() as { port: number };
  t.match(await readError(connect(t, { baseUrl: `127.0.0.1:${port}` })), {
    message: /^the model server sent invalid HTTP \(\w+\)\.$/,
    retryable: false,
  });
});

t.test('R-031 R-032 the status decides whether and when to retry', async (t) => {
  const { server, clock, ...connection } = await open(t);
  const outcomes: [number, boolean][] = [
    [400, false],
    [403, false],
    [404, false],
    [408, true],
    [409, true],
    [422, false],
    [429, true],
    [498, true],
    [500, true],
    [502, true],
    [503, true],
    [529, true],
  ];
  for (const [status, retryable] of outcomes) {
    server.enqueue({ status, body: { error: { message: 'Because.' } } });
    const { message, ...rest } = await readError({ ...connection });
    t.equal(message, `the model server answered ${status}: Because.`);
    t.match(rest, { name: 'ModelError', retryable, retryAfter: undefined, cause: undefined });
  }

  server.enqueue({ status: 429, retryAfter: 2 });
  t.match(await readError(connection), { message: /^the model server answered 429 and asks to wait 2 s: /, retryAfter: 2 });
  server.enqueue({ status: 503, retryAfter: new Date(clock.now() + 5000).toUTCString(), body: '' });
  t.match(await readError(connection, WHOLE), {
    message: 'the model server answered 503 and asks to wait 5 s',
    retryAfter: 5,
  });
  server.enqueue({ status: 500, headers: { 'retry-after-ms': '250', 'x-should-retry': 'false' } });
  t.match(await readError(connection), { retryable: false, retryAfter: 0.25 });
  server.enqueue({ status: 400, headers: { 'x-should-retry': 'true' } });
  t.match(await readError(connection), { retryable: true, retryAfter: undefined });
});

t.test('a redirect is not followed but explained', async (t) => {
  const { server, ...connection } = await open(t);
  server.enqueue({ status: 307, body: '', headers: { location: 'http://elsewhere/v1' } });
  t.match(await readError(connection), {
    message: 'the model server answered 307, a redirect: set baseUrl to its target.',
    retryable: false,
  });
});

t.test('an error keeps the server’s message, redacted and shortened', async (t) => {
  const { server, ...connection } = await open(t, { headers: { 'x-token': 'Token abcdefgh123', 'x-short': 'on' } });
  const { host } = new URL(server.url);
  server.enqueue(
    {
      status: 400,
      body: { error: { message: `Key sk-very-secret and abcdefgh123 of Token abcdefgh123\n on http://${host}/v1 fail.` } },
    },
    { status: 500, body: `<html>${'x'.repeat(99)}` },
    { status: 500, body: 'y'.repeat(600) },
    { status: 500, body: 'z'.repeat(100_000) },
    { raw: ['half an', ' error'], status: 500, contentType: 'text/plain', ending: 'cut' },
  );
  t.equal(
    (await readError(connection)).message,
    'the model server answered 400: Key [redacted] and [redacted] of [redacted] on [redacted]/v1 fail.',
  );
  t.equal((await readError(connection)).message, 'the model server answered 500.');
  t.equal((await readError(connection)).message, `the model server answered 500: ${'y'.repeat(499)}…`);
  t.equal((await readError(connection)).message, `the model server answered 500: ${'z'.repeat(499)}…`);
  t.equal((await readError(connection)).message, 'the model server answered 500: half an error');
});

t.test('what a server says about the key goes to the log only', async (t) => {
  const { server, ...connection } = await open(t);
  const refusals: [number, object | string, string][] = [
    [401, { error: { message: 'Incorrect API key provided: sk-ve****cret.' } }, 'Incorrect API key provided: [redacted].'],
    [403, { error: { message: 'No.', code: 'invalid_api_key' } }, 'No.'],
    [400, { error: { message: 'The API key sk-very-s is malformed.' } }, 'The API key [redacted] is malformed.'],
    [400, [{ error: { code: 400, message: 'Bad.', details: [{ reason: 'API_KEY_INVALID' }] } }], 'Bad.'],
  ];
  for (const [status, body, cause] of refusals) {
    server.enqueue({ status, body });
    const error = await readError(connection);
    t.match(error, {
      message: `the model server did not accept the credentials (${status}); check apiKey.`,
      retryable: false,
    });
    t.match(error.cause, { message: cause });
  }
  server.enqueue({ status: 401, body: '' });
  t.equal((await readError(connection)).cause, undefined);
  server.enqueue({ raw: ['data: {"error":{"message":"Unauthorized.","code":401}}\n\n'] });
  t.match(await readError(connection), { message: 'the model server did not accept the credentials (401); check apiKey.' });
  server.enqueue({ status: 400, body: { error: { message: 'Failed: sk-very-secr' } } });
  t.equal(
    (await readError(connection)).message,
    'the model server answered 400: Failed: [redacted]',
    'a part of the key is redacted anywhere',
  );
});

t.test('R-031 a 429 says how long to wait in its body too, and a used-up quota is not retried', async (t) => {
  const { server, ...connection } = await open(t);
  const gemini = (...details: readonly object[]) => [
    { error: { code: 429, message: 'You exceeded your current quota.', status: 'RESOURCE_EXHAUSTED', details } },
  ];
  const info = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '4.5s' };
  const failure = { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId: 'RequestsPerDayPerModel' }] };
  const outcomes: [object, boolean, number | undefined][] = [
    [gemini(info), true, 4.5],
    [gemini(failure, info), false, undefined],
    [{ error: { message: 'Please try again in 1m2.5s.', code: 'rate_limit_exceeded' } }, true, 62.5],
    [{ error: { message: 'Retry after 20 seconds' } }, true, 20],
    [{ error: { message: 'Try again in 250ms' } }, true, 0.25],
    [{ error: { message: 'Slow down', retry_after: 3 } }, true, 3],
    [{ error: { message: 'Quota', type: 'insufficient_quota', code: 'insufficient_quota' } }, false, undefined],
    [{ error: { message: 'Try again in a moment' } }, true, undefined],
  ];
  for (const [body, retryable, retryAfter] of outcomes) {
    server.enqueue({ status: 429, body });
    t.match(await readError(connection), { retryable, retryAfter }, JSON.stringify(body));
  }
  server.enqueue({ raw: [JSON.stringify(gemini(info))], contentType: 'application/json' });
  t.match(await readError(connection), { retryable: true, retryAfter: 4.5 }, 'with status 200');
});

t.test('shows the sentence of the provider behind a gateway', async (t) => {
  const { server, ...connection } = await open(t);
  const raw = JSON.stringify({ error: { message: 'Kimi is busy.', type: 'engine_overloaded_error' } });
  const error = { message: 'Provider returned error', code: 429, metadata: { raw, provider_name: 'Moonshot AI' } };
  server.enqueue({ status: 429, body: { error } }, { raw: [`data: ${JSON.stringify({ error })}\n\n`] });
  t.match(await readError(connection), { message: 'the model server answered 429: Moonshot AI: Kimi is busy.', retryable: true });
  t.match(await readError(connection), {
    message: 'the model server reported an error: Moonshot AI: Kimi is busy.',
    retryable: true,
  });
  server.enqueue({ status: 502, body: { error: { message: 'Bad.', metadata: { raw: 'plain words' } } } });
  t.match(await readError(connection), { message: 'the model server answered 502: plain words' });
});

t.test('recognizes a conversation that is too long for the model', async (t) => {
  const { server, ...connection } = await open(t);
  const said = "This model's maximum context length is 8192 tokens.";
  server.enqueue(
    { status: 400, body: { error: { message: said, code: 'context_length_exceeded' } } },
    { status: 500, body: { error: { code: 500, message: 'the request exceeds the available context size' } } },
    { raw: ['error: {"code":400,"message":"the request exceeds the available context size"}\n\ndata: [DONE]\n\n'] },
    { status: 429, body: { error: { message: 'Too many tokens per minute', code: 'rate_limit_exceeded' } } },
  );
  const start = 'the conversation is too long for the model; the model server';
  t.match(await readError(connection), { message: `${start} answered 400: ${said}`, retryable: false });
  t.match(await readError(connection), { message: new RegExp(`^${start} answered 500: `), retryable: false });
  t.match(await readError(connection), { message: new RegExp(`^${start} reported an error: `), retryable: false });
  t.match(await readError(connection), { message: /^the model server answered 429: /, retryable: true });
});

t.test('an error in the middle of a stream is read in every form', async (t) => {
  const { server, ...connection } = await open(t);
  const forms = [
    'error: {"code":503,"message":"No."}\n\ndata: [DONE]\n\n',
    'error: {"error":{"code":503,"message":"No."}}\n\n',
    'event: error\ndata: {"code":503,"message":"No."}\n\n',
    'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"No."}}\n\n',
    '{"error":{"message":"No.","type":"server_error"}}\n\n',
    '{\n  "error": {\n    "message": "No.",\n    "code": "503"\n  }\n}\n',
    'data: {"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":503,"message":"No."}}]}\n\n',
    'data: {"choi\ndata: {"error":{"code":503,"message":"No."}}\n\n',
    'data: {"object":"error","message":"No.","code":503}\n\n',
    'data: {"base_resp":{"status_code":1002,"status_msg":"No."}}\n\n',
  ];
  for (const form of forms) {
    server.enqueue({ raw: [`data: {"choices":[{"delta":{"content":"so"}}]}\n\n${form}`] });
    const error = await readError(connection);
    t.match(error, { message: 'the model server reported an error: No.', retryable: true, text: 'so' }, form);
  }
  server.enqueue({ raw: ['event: error\ndata: out of memory\n\n'] });
  t.match(await readError(connection), { message: 'the model server reported an error: out of memory', retryable: false });
  server.enqueue({ raw: ['event: message\ndata: {"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n'] });
  t.strictSame(await readAll(connection), [textEvent('a'), STOP], 'another event name means nothing');
});

t.test('codes decide whether an error is worth a retry', async (t) => {
  const { server, ...connection } = await open(t);
  const codes: [object, boolean][] = [
    [{ type: 'overloaded_error' }, true],
    [{ type: 'engine_overloaded_error' }, true],
    [{ code: 'rate_limit_exceeded' }, true],
    [{ status: 'UNAVAILABLE' }, true],
    [{ code: '529' }, true],
    [{ http_code: '500', type: 'internal' }, true],
    [{ status_code: 1001 }, true],
    [{ status_code: 1008 }, false],
    [{ code: 3280 }, false],
    [{ code: 429, type: 'insufficient_quota' }, false],
    [{ type: 'invalid_request_error', code: 'bad' }, false],
    [{ type: 'not_found_error' }, false],
    [{ message: 'The server is overloaded, please try again later.' }, true],
    [{ message: 'That is wrong.' }, false],
  ];
  for (const [error, retryable] of codes) {
    server.enqueue({ raw: [`data: ${JSON.stringify({ error })}\n\n`] });
    t.match(await readError(connection), { retryable }, JSON.stringify(error));
  }
});

t.test('an invalid request is reported as such', async (t) => {
  const { connector } = await open(t);
  t.match(await readError({ connector }, { headers: { 'bad name': 'x' } }), {
    message: 'the request to the model server is invalid; the server log has the details.',
    retryable: false,
    cause: { code: 'UND_ERR_INVALID_ARG' },
  });
});

t.test('C-175 names the kind of failure where the model server does', async (t) => {
  const { server, ...connection } = await open(t);
  const error = (code: string) => ({ error: { message: 'Because.', code } });
  const kinds: [status: number, body: object, code: string | undefined, isRequestFault: boolean][] = [
    [400, error('context_length_exceeded'), 'context_length_exceeded', true],
    [400, error('content_filter'), 'content_filter', true],
    [403, error('content_policy_violation'), 'content_filter', true],
    [400, { error: { message: 'Because.', type: 'invalid_request_error', code: null } }, 'invalid_request', true],
    [400, { error: { message: 'Because.', status: 'INVALID_ARGUMENT', code: 400 } }, 'invalid_request', true],
    [400, { error: { message: 'Because.' } }, undefined, true],
    [404, { error: { message: 'Because.', type: 'invalid_request_error', code: 'model_not_found' } }, undefined, false],
    [401, { error: { message: 'Because.', type: 'invalid_request_error' } }, undefined, false],
    [429, { error: { message: 'Because.' } }, 'rate_limited', false],
    [429, error('insufficient_quota'), 'rate_limited', false],
    [529, { type: 'error', error: { type: 'overloaded_error', message: 'Because.' } }, 'overloaded', false],
    [503, error('engine_overloaded'), 'overloaded', false],
    [503, { error: { message: 'Because.' } }, undefined, false],
    [500, { error: { message: 'Because.', type: 'server_error' } }, undefined, false],
  ];
  for (const [status, body, code, isRequestFault] of kinds) {
    server.enqueue({ status, body });
    t.match(await readError(connection), { code, isRequestFault }, `${status} ${JSON.stringify(body)}`);
  }
  for (const [status, body, code] of kinds) {
    if (code === undefined || (status === 429 && !('code' in (body as { error: object }).error))) continue;
    server.enqueue({ raw: [JSON.stringify(body)], contentType: 'application/json' });
    t.match(await readError(connection), { code }, `200 ${JSON.stringify(body)}`);
  }
});

t.test('an error inside of a stream describes the request if its code is such a status', async (t) => {
  const { server, ...connection } = await open(t);
  for (const [code, isRequestFault] of [
    [400, true],
    [422, true],
    [500, false],
  ] as const) {
    const error = { object: 'error', message: 'Bad image.', code };
    for (const chunk of [error, { error }]) {
      server.enqueue({ raw: [`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`] });
      t.match(await readError(connection), { message: /reported an error: Bad image\./, isRequestFault }, String(code));
    }
  }
});
