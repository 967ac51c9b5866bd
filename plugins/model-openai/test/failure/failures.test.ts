import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { errorText, errorTextOfBody } from '../../src/failure/error-object.js';
import { Failures } from '../../src/failure/failures.js';
import { Redactor } from '../../src/failure/redactor.js';
import { retryAdvice } from '../../src/failure/retry-advice.js';

t.test('finds the message in every known form of an error', async (t) => {
  const message = 'No such model.';
  for (const error of [
    message,
    { message },
    { error: message },
    { error: { message } },
    { error: { error: message } },
    [{ error: { message } }],
    { detail: message },
    { detail: [{ loc: ['body'], msg: message }] },
  ]) {
    t.equal(errorText(error), message);
    t.equal(errorTextOfBody(typeof error === 'string' ? error : ` ${JSON.stringify(error)}\n`), message);
  }
});

t.test('a body of another form is shown unchanged, HTML not at all', async (t) => {
  t.equal(errorTextOfBody('{"code":7}'), '{"code":7}');
  t.equal(errorTextOfBody('{"error":'), '{"error":');
  t.equal(errorTextOfBody('<!doctype html>'), undefined);
  t.equal(errorTextOfBody(' \n'), undefined);
  const deep = `${'{"error":'.repeat(5000)}"x"${'}'.repeat(5000)}`;
  t.equal(errorTextOfBody(deep), deep);
  for (const nothing of [null, 7, [], {}, { message: '' }, { error: null }]) t.equal(errorText(nothing), undefined);
});

t.test('Retry-After is seconds or a date; retry-after-ms takes precedence', async (t) => {
  const now = Date.UTC(2026, 0, 1);
  const wait = (headers: Record<string, string | string[]>) => retryAdvice(headers, now).retryAfter;
  t.equal(wait({ 'retry-after': '2' }), 2000);
  t.equal(wait({ 'retry-after': '0.5' }), 500);
  t.equal(wait({ 'retry-after': 'Thu, 01 Jan 2026 00:00:07 GMT' }), 7000);
  t.equal(wait({ 'retry-after': 'Wed, 31 Dec 2025 00:00:00 GMT' }), 0);
  t.equal(wait({ 'retry-after': '2', 'retry-after-ms': '150' }), 150);
  for (const odd of ['', 'soon', '-1x', 'Infinity']) t.equal(wait({ 'retry-after': odd }), undefined, odd);
  t.equal(wait({ 'retry-after': ['1', '2'] }), undefined);
  t.equal(wait({}), undefined);
});

t.test('obeys x-should-retry', async (t) => {
  const retryable = (value?: string) => retryAdvice(value === undefined ? {} : { 'x-should-retry': value }, 0).retryable;
  t.equal(retryable('true'), true);
  t.equal(retryable('false'), false);
  t.equal(retryable('maybe'), undefined);
  t.equal(retryable(), undefined);
});

t.test('a request without a response is retryable if a retry can help', async (t) => {
  const failures = new Failures(new Redactor([]), new ManualClock(), { idleTimeout: '1s', connectTimeout: '2s' });
  const said = (code: string) => {
    const { message, retryable } = failures.noResponse(Object.assign(new Error('at 10.0.0.7:80'), { code }));
    return `${message} ${retryable}`;
  };
  t.equal(said('EHOSTUNREACH'), 'the request to the model server failed (EHOSTUNREACH). true');
  t.equal(said('ETIMEDOUT'), 'connecting to the model server took longer than 2s (connectTimeout). true');
  t.equal(said('ECONNRESET'), 'the model server closed the connection without an answer. true');
  t.equal(said('CERT_HAS_EXPIRED'), 'the TLS connection to the model server failed (CERT_HAS_EXPIRED). true');
  t.equal(
    said('UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
    'the TLS connection to the model server failed (UNABLE_TO_VERIFY_LEAF_SIGNATURE). true',
  );
  t.equal(said('UND_ERR_HEADERS_OVERFLOW'), 'the model server sent invalid HTTP (UND_ERR_HEADERS_OVERFLOW). false');
  t.equal(said('UND_ERR_DESTROYED'), 'the connection was stopped before the model server answered. false');
});
