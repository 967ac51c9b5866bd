import { invalidRequest, serviceError } from '@plugboard/openai-protocol';
import { HttpError, retryAfterHeaders } from '@plugboard/transport-http';
import t from 'tap';
import { errorEvent } from '../src/messages/error-event.js';
import { limited } from '../src/messages/refusals.js';

const parse = (error: unknown, streamId?: string) => JSON.parse(errorEvent(error, streamId));

t.test('C-203 an error of the protocol keeps its status, code, message and parameter', async (t) => {
  t.strictSame(parse(invalidRequest('Wrong.', { param: 'input', code: 'invalid_value' })), {
    type: 'error',
    status: 400,
    error: { type: 'invalid_request_error', code: 'invalid_value', message: 'Wrong.', param: 'input' },
  });
});

t.test('every event has a code, also where the body over HTTP has none', async (t) => {
  for (const [error, type, code] of [
    [serviceError(400, 'x'), 'svc_error', 'model_not_found'],
    [serviceError(403, 'x'), 'svc_error', 'agent_forbidden'],
    [serviceError(502, 'x'), 'svc_error', 'svc_error'],
    [new HttpError(404, 'x'), 'invalid_request_error', 'invalid_request'],
    [new HttpError(404, 'x', { code: 'gone' }), 'invalid_request_error', 'gone'],
    [new HttpError(400, 'x', { body: { error: { message: 'y', code: null } } }), 'invalid_request_error', 'invalid_request'],
    [new HttpError(500, 'x'), 'server_error', 'internal_error'],
    [new HttpError(503, 'x', { code: 'overloaded' }), 'server_error', 'overloaded'],
  ] as const) {
    t.match(parse(error), { status: error.status, error: { type, code } }, `${error.status} ${code}`);
  }
});

t.test('an error without a body has the message of the error', async (t) => {
  t.strictSame(parse(new HttpError(404, 'Not here.')).error, {
    type: 'invalid_request_error',
    code: 'invalid_request',
    message: 'Not here.',
    param: null,
  });
});

t.test('anything else is a 500 that reveals nothing', async (t) => {
  for (const error of [new Error('password=hunter2'), 'password=hunter2', undefined]) {
    const event = parse(error);
    t.match(event, { status: 500, error: { type: 'server_error', code: 'internal_error', message: /details are in its log/ } });
    t.notMatch(JSON.stringify(event), /hunter2/);
  }
});

t.test('the time to wait is in milliseconds, whichever header has it', async (t) => {
  t.equal(parse(limited('x', 'y')).error.retry_after_ms, 1_000);
  t.equal(parse(new HttpError(503, 'x', { headers: retryAfterHeaders(1_234) })).error.retry_after_ms, 1_234);
  t.equal(parse(new HttpError(503, 'x', { headers: { 'retry-after': '7' } })).error.retry_after_ms, 7_000);
  const date = new HttpError(503, 'x', { headers: { 'retry-after': 'Sun, 22 Nov 2026 05:00:00 GMT' } });
  for (const error of [date, new HttpError(503, 'x')]) t.notOk('retry_after_ms' in parse(error).error);
});

t.test('the stream_id of the request is returned', async (t) => {
  t.equal(parse(limited('x', 'y'), 'lane').stream_id, 'lane');
  t.equal(parse(limited('x', 'y'), '').stream_id, '');
  t.notOk('stream_id' in parse(limited('x', 'y')));
});
