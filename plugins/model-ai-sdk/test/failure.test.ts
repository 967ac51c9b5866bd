import t from 'tap';
import { Failures } from '../src/failure/failures.js';

const failures = new Failures({ secrets: ['hush-hush'], idleTimeout: '60s', model: 'gemini', entry: 'models.fast' });
const withCode = (code: string) => Object.assign(new Error('failed'), { cause: Object.assign(new Error('system'), { code }) });

t.test('an error without a status says what failed and whether a retry may help', async (t) => {
  const cases: readonly (readonly [error: unknown, message: string, retryable: boolean])[] = [
    [withCode('ENOENT'), 'the provider package cannot read a file (ENOENT); check those that models.fast names.', false],
    [
      withCode('ECONNREFUSED'),
      'the provider could not be reached (ECONNREFUSED); check baseUrl of models.fast and that it is running.',
      true,
    ],
    [withCode('ECONNRESET'), 'the provider could not be reached (ECONNRESET).', true],
    ['quota of hush-hush', 'the provider reported an error: quota of [redacted]', false],
    ['Overloaded', 'the provider reported an error: Overloaded', true],
    [{ message: 'bad', isRetryable: true }, 'the provider reported an error: bad', true],
    [{ error: { message: 'inner' }, value: { type: 'server_error' } }, 'the provider reported an error: inner', true],
    [undefined, 'the provider reported an error.', false],
    [{ statusCode: 200, message: 'parse' }, 'the answer was cut off: the provider closed the connection.', true],
    [{ statusCode: 409, message: '' }, 'the provider answered 409.', true],
  ];
  for (const [error, message, retryable] of cases) t.match(failures.of(error, 0), { message, retryable }, message);
});

t.test('an end without a usual finish reason shows the reason of the provider, without secrets', async (t) => {
  t.match(failures.unfinished('interrupted', undefined).message, /cut off: the provider ended it without a finish reason\.$/);
  t.match(failures.unfinished('interrupted', 'hush-hush'), { message: /finish reason \(\[redacted\]\)\.$/ });
  t.match(failures.unfinished('other', undefined), { retryable: true, message: /^the answer was cut off/ });
  t.equal(
    failures.unfinished('other', 'SAFETY').message,
    'the provider ended the answer with the finish reason "other" (SAFETY).',
  );
});

t.test('a page or JSON instead of a stream names what to check', async (t) => {
  t.match(failures.notAStream(' <html>'), {
    retryable: false,
    message: /200 with a web page instead of a stream; check baseUrl of models\.fast/,
  });
  t.match(failures.notAStream('[{"detail":"try again"}]'), {
    retryable: true,
    message: /JSON instead of a stream \(try again\)/,
  });
  t.match(failures.notAStream('{"error":"no"}'), { retryable: false, message: /\(no\)/ });
  t.match(failures.notAStream('{}'), { message: /\(\{\}\)/ });
  t.equal(failures.redirect(307).message, 'the provider answered 307, a redirect: set baseUrl of models.fast to its target.');
});
