import type { Failure, FailureCode } from '@plugboard/kernel/contracts';
import t from 'tap';
import { turnFailureError } from '../src/errors/turn-failure.js';

const failure = (code: FailureCode, more: Partial<Failure> = {}): Failure => ({
  code,
  message: 'Why.',
  toolsRan: false,
  ...more,
});

t.test('C-165 C-167 a failed turn gets 502 with message and type only', async (t) => {
  for (const code of [
    'model_failed',
    'timed_out',
    'crashed',
    'store_failed',
    'stopped',
    'session_quarantined',
    'abandoned',
  ] as const) {
    const error = turnFailureError(failure(code), false);
    t.equal(error.status, 502);
    t.same(error.body, { error: { message: 'Why.', type: 'svc_error' } });
    t.same(error.headers, {});
  }
});

t.test('PG-13 a turn whose server lost its lease gets 502 with its code, and may be sent again', async (t) => {
  const error = turnFailureError(failure('lease_lost'), true);
  t.equal(error.status, 502);
  t.same(error.body, { error: { message: 'Why.', type: 'server_error', param: null, code: 'lease_lost' } });
  t.same(error.headers, {});
  t.same(turnFailureError(failure('lease_lost', { toolsRan: true }), true).headers, { 'x-should-retry': 'false' });
});

t.test('C-132 retries are discouraged once a tool ran, or in a session', async (t) => {
  t.same(turnFailureError(failure('model_failed', { toolsRan: true }), false).headers, { 'x-should-retry': 'false' });
  t.same(turnFailureError(failure('model_failed'), true).headers, { 'x-should-retry': 'false' });
});

t.test('C-170 an overloaded server gets 503 with Retry-After', async (t) => {
  for (const code of ['overloaded', 'draining'] as const) {
    const error = turnFailureError(failure(code, { retryAfter: 2.5 }), true);
    t.equal(error.status, 503);
    t.same(error.body, { error: { message: 'Why.', type: 'server_error', param: null, code } });
    t.same(error.headers, { 'retry-after': '3', 'retry-after-ms': '2500' });
  }
});

t.test('C-166 a busy session gets 409 with all four keys', async (t) => {
  const error = turnFailureError(failure('session_busy'), true);
  t.equal(error.status, 409);
  t.same(error.body, { error: { message: 'Why.', type: 'invalid_request_error', param: null, code: 'session_busy' } });
  t.same(error.headers, { 'retry-after': '1', 'retry-after-ms': '1000' });
  t.match(turnFailureError(failure('session_busy', { retryAfter: 0 }), true).headers, { 'retry-after': '1' });
});

t.test('C-166 an invalid request gets 400 with the field', async (t) => {
  const error = turnFailureError(failure('invalid_request', { param: 'messages[2]' }), true);
  t.equal(error.status, 400);
  t.same(error.body, { error: { message: 'Why.', type: 'invalid_request_error', param: 'messages[2]', code: null } });
  t.equal(turnFailureError(failure('invalid_request'), false).body.error.param, null);
});

t.test('a turn ended by another request gets a 400, which clients do not retry', async (t) => {
  for (const code of ['turn_interrupted', 'turn_cancelled', 'session_deleted'] as const) {
    const error = turnFailureError(failure(code), true);
    t.equal(error.status, 400);
    t.same(error.body, { error: { message: 'Why.', type: 'invalid_request_error', param: null, code } });
    t.same(error.headers, { 'x-should-retry': 'false' });
  }
});

t.test('a full session and an existing key get a 409 without retry', async (t) => {
  for (const code of ['session_full', 'conversation_exists'] as const) {
    const error = turnFailureError(failure(code), true);
    t.equal(error.status, 409);
    t.same(error.body, { error: { message: 'Why.', type: 'invalid_request_error', param: null, code } });
    t.same(error.headers, { 'x-should-retry': 'false' });
  }
});

t.test('S-39 a project at a quota of the store gets a 507 without retry', async (t) => {
  const error = turnFailureError(failure('quota_exceeded'), true);
  t.equal(error.status, 507);
  t.same(error.body, { error: { message: 'Why.', type: 'server_error', param: null, code: 'quota_exceeded' } });
  t.same(error.headers, { 'x-should-retry': 'false' });
});

t.test('a missing session gets 404', async (t) => {
  const error = turnFailureError(failure('conversation_not_found'), true);
  t.equal(error.status, 404);
  t.equal(error.body.error.code, 'conversation_not_found');
});

t.test('C-169 a rate limit gets 429 with Retry-After', async (t) => {
  const error = turnFailureError(failure('rate_limited', { retryAfter: 1 }), false);
  t.equal(error.status, 429);
  t.same(error.body, { error: { message: 'Why.', type: 'requests', param: null, code: 'rate_limit_exceeded' } });
  t.same(error.headers, { 'retry-after': '1', 'retry-after-ms': '1000' });
});

t.test('a conversation that is too long gets 400', async (t) => {
  const error = turnFailureError(failure('context_length_exceeded'), true);
  t.equal(error.status, 400);
  t.same(error.body, {
    error: { message: 'Why.', type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' },
  });
});

t.test('C-175 content that the model server refuses gets 400', async (t) => {
  const error = turnFailureError(failure('content_filter'), false);
  t.equal(error.status, 400);
  t.same(error.body, {
    error: { message: 'Why.', type: 'invalid_request_error', param: null, code: 'content_policy_violation' },
  });
});

t.test('a caller that may not run the turn gets 403', async (t) => {
  const error = turnFailureError(failure('forbidden'), false);
  t.equal(error.status, 403);
  t.same(error.body, { error: { message: 'Why.', type: 'svc_error' } });
});

t.test('C-176 the wait reaches the caller as it is, and one that clients do not keep stops their retries', async (t) => {
  for (const code of ['rate_limited', 'overloaded', 'model_failed', 'session_busy'] as const) {
    t.same(turnFailureError(failure(code, { retryAfter: 20 }), false).headers, {
      'retry-after': '20',
      'retry-after-ms': '20000',
    });
    t.same(turnFailureError(failure(code, { retryAfter: 86_400 }), false).headers, {
      'retry-after': '86400',
      'retry-after-ms': '86400000',
      'x-should-retry': 'false',
    });
    t.match(turnFailureError(failure(code, { retryAfter: 1, toolsRan: true }), false).headers, { 'x-should-retry': 'false' });
  }
});
