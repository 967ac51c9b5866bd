import { ManualClock } from '@plugboard/kernel/testing';
import t from 'tap';
import { errorText, errorTextOfBody } from '../src/error-text.js';
import { Failures } from '../src/failures.js';
import { Redactor } from '../src/redactor.js';
import { retryAdvice } from '../src/retry-advice.js';

t.test('an error says the same in all forms that it is known to take', async (t) => {
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

t.test('a body of another form is shown as it is, and a page of HTML not at all', async (t) => {
  t.equal(errorTextOfBody('{"code":7}'), '{"code":7}');
  t.equal(errorTextOfBody('{"error":'), '{"error":');
  t.equal(errorTextOfBody('<!doctype html>'), undefined);
  t.equal(errorTextOfBody(' \n'), undefined);
  const deep = `${'{"error":'.repeat(5000)}"x"${'}'.repeat(5000)}`;
  t.equal(errorTextOfBody(deep), deep);
  for (const nothing of [null, 7, [], {}, { message: '' }, { error: null }]) t.equal(errorText(nothing), undefined);
});

t.test('Retry-After is seconds or a date, and retry-after-ms more exact', async (t) => {
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

t.test('x-should-retry is obeyed either way', async (t) => {
  const retryable = (value?: string) => retryAdvice(value === undefined ? {} : { 'x-should-retry': value }, 0).retryable;
  t.equal(retryable('true'), true);
  t.equal(retryable('false'), false);
  t.equal(retryable('maybe'), undefined);
  t.equal(retryable(), undefined);
});

t.test('a request that went unanswered is worth another try, where that is not in vain', async (t) => {
  const failures = new Failures(new Redactor([]), new ManualClock(), { idleTimeout: '1s', connectTimeout: '2s' });
  const said = (code: string) => {
    const { message, retryable } = failures.unanswered(Object.assign(new Error('at 10.0.0.7:80'), { code }));
    return `${message} ${retryable}`;
  };
  t.equal(said('EHOSTUNREACH'), 'the model server could not be asked (EHOSTUNREACH). true');
  t.equal(said('ETIMEDOUT'), 'there was no connection to the model server within 2s (connectTimeout). true');
  t.equal(said('ECONNRESET'), 'the model server closed the connection without an answer. true');
  t.equal(said('CERT_HAS_EXPIRED'), 'there was no secure connection to the model server (CERT_HAS_EXPIRED). true');
  t.equal(
    said('UNABLE_TO_VERIFY_LEAF_SIGNATURE'),
    'there was no secure connection to the model server (UNABLE_TO_VERIFY_LEAF_SIGNATURE). true',
  );
  t.equal(said('UND_ERR_HEADERS_OVERFLOW'), 'the model server did not answer in proper HTTP (UND_ERR_HEADERS_OVERFLOW). false');
  t.equal(said('UND_ERR_DESTROYED'), 'the connection was stopped before the model server had answered. false');
});
