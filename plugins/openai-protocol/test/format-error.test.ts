import { HttpError } from '@plugboard/transport-http';
import t from 'tap';
import { formatError } from '../src/index.js';

t.test('an HttpError is formatted with the error type of its status', async (t) => {
  const type = (status: number, code?: string) => formatError(new HttpError(status, 'm', { code })).body.error;
  t.same(type(404), { message: 'm', type: 'invalid_request_error', param: null, code: null });
  t.same(type(401, 'unauthorized'), {
    message: 'm',
    type: 'invalid_request_error',
    param: null,
    code: 'invalid_api_key',
  });
  t.same(type(429, 'rate_limit_exceeded'), { message: 'm', type: 'requests', param: null, code: 'rate_limit_exceeded' });
  t.same(type(500, 'internal_error'), { message: 'm', type: 'server_error', param: null, code: 'internal_error' });
  t.same(type(503, 'draining'), { message: 'm', type: 'server_error', param: null, code: 'draining' });
  t.same(type(403, 'insufficient_scope'), { message: 'm', type: 'svc_error' });
});
