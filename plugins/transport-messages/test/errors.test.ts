import type { AgentEvent } from '@plugboard/kernel';
import type { Failure, FailureCode } from '@plugboard/kernel/contracts';
import { HttpError } from '@plugboard/transport-http';
import t from 'tap';
import { formatError } from '../src/errors/format-error.js';
import { MessagesError } from '../src/errors/messages-error.js';
import { eventsOf, refusalOf, started, startRoutes, step, text } from './support/route.js';

const failing = (failure: Partial<Failure>): AgentEvent => ({
  type: 'failed',
  failure: { code: 'model_failed', message: 'It failed.', toolsRan: false, ...failure },
});

t.test('CL-24 errors have the form, the types and the statuses of the protocol', async (t) => {
  t.strictSame(formatError(new MessagesError(400, 'invalid_request_error', 'x: no', { code: 'y' }), 'req_1'), {
    status: 400,
    headers: { 'request-id': 'req_1', 'x-should-retry': 'false' },
    body: {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'x: no', details: { error_code: 'y' } },
      request_id: 'req_1',
    },
  });
  const of = (status: number) => {
    const { status: sent, body } = formatError(new HttpError(status, 'm'), 'req_1');
    return [sent, (body as { error: { type: string } }).error.type];
  };
  t.strictSame([400, 401, 403, 404, 405, 408, 413, 429, 500, 503].map(of), [
    [400, 'invalid_request_error'],
    [401, 'authentication_error'],
    [403, 'permission_error'],
    [404, 'not_found_error'],
    [405, 'invalid_request_error'],
    [408, 'invalid_request_error'],
    [413, 'request_too_large'],
    [429, 'rate_limit_error'],
    [500, 'api_error'],
    [529, 'overloaded_error'],
  ]);
});

t.test('CL-24 clients are told not to repeat what would fail again', async (t) => {
  const retry = (status: number) => formatError(new HttpError(status, 'm'), 'req_1').headers?.['x-should-retry'];
  t.strictSame([400, 401, 403, 404, 413].map(retry), Array(5).fill('false'));
  t.strictSame([408, 409, 429, 500, 503].map(retry), Array(5).fill(undefined));
});

t.test('CL-24 the failure of a turn has the status of its kind', async (t) => {
  const of = async (failure: Partial<Failure>, headers = {}) => {
    const { status, type, headers: sent } = await refusalOf({}, { batches: [[failing(failure)]] }, headers);
    return [status, type, sent['retry-after'] ?? sent['x-should-retry']];
  };
  const expected: Partial<Record<FailureCode, readonly unknown[]>> = {
    model_failed: [500, 'api_error', undefined],
    timed_out: [500, 'api_error', undefined],
    invalid_request: [400, 'invalid_request_error', undefined],
    overloaded: [529, 'overloaded_error', '1'],
    draining: [529, 'overloaded_error', '1'],
    rate_limited: [429, 'rate_limit_error', '1'],
    session_busy: [409, 'invalid_request_error', '1'],
    turn_interrupted: [400, 'invalid_request_error', undefined],
    quota_exceeded: [400, 'invalid_request_error', undefined],
    conversation_not_found: [404, 'not_found_error', undefined],
    content_filter: [400, 'invalid_request_error', undefined],
    forbidden: [403, 'permission_error', undefined],
    lease_lost: [502, 'api_error', undefined],
  };
  for (const [code, told] of Object.entries(expected)) t.strictSame(await of({ code: code as FailureCode }), told, code);
  t.strictSame(await of({ code: 'rate_limited', retryAfter: 2.5 }), [429, 'rate_limit_error', '3']);
  t.strictSame(await of({ toolsRan: true }), [500, 'api_error', 'false']);
  t.strictSame(await of({}, { 'x-session-id': 's' }), [500, 'api_error', 'false']);
});

t.test('CL-24 a conversation that is too long is told in words that clients look for', async (t) => {
  const batches = [[failing({ code: 'context_length_exceeded', message: 'The conversation has 9 tokens.' })]];
  t.equal((await refusalOf({}, { batches })).message, 'prompt is too long: The conversation has 9 tokens.');
});

t.test('CL-24 fields that the runtime names have their path in the request', async (t) => {
  const at = async (param: string) => {
    const batches = [[failing({ code: 'invalid_request', message: 'No.', param })]];
    const messages = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: 'y' },
      { role: 'user', content: 'z' },
    ];
    return (await refusalOf({ system: 'Be brief.', messages }, { batches })).message;
  };
  t.equal(await at('messages[0]'), 'system: No.');
  t.equal(await at('messages[3].tool_call_id'), 'messages.2: No.');
  t.equal(await at('tools[4].function.name'), 'tools.4.name: No.');
});

t.test('CL-24 within a stream a failure is the event `error`, and nothing follows it', async (t) => {
  const { post } = startRoutes({ batches: [[started], [step(1), text('Hel')], [failing({})]] });
  const events = await eventsOf(await post({ stream: true }));
  t.match(events.slice(-1), [{ type: 'error', error: { type: 'api_error', message: 'It failed.' }, request_id: /^req_/ }]);
  t.match(events.at(-2), { type: 'content_block_delta' });
  t.match(await refusalOf({ stream: true }, { batches: [[started], [step(1)], [failing({})]] }), { status: 500 });
  const busy = [[started], [step(1), text('Hel')], [failing({ code: 'rate_limited', retryAfter: 7 })]];
  t.match((await eventsOf(await startRoutes({ batches: busy }).post({ stream: true }))).at(-1), {
    error: { type: 'rate_limit_error', details: { error_code: 'rate_limited', retry_after: 7 } },
  });
});

t.test('CL-24 an unknown model is 404, an agent out of scope 403', async (t) => {
  t.match(await refusalOf({}, { resolution: { kind: 'unknown' } }), { status: 404, type: 'not_found_error', turns: 0 });
  t.match(await refusalOf({}, { resolution: { kind: 'forbidden' } }), { status: 403, type: 'permission_error', turns: 0 });
});
