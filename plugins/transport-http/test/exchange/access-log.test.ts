import { type AuthProvider, createRedactor } from '@plugboard/kernel';
import { ManualClock } from '@plugboard/testing';
import t from 'tap';
import { LogThrottle } from '../../src/exchange/log-throttle.js';
import plugin, { type HttpRoute } from '../../src/index.js';
import { ask } from '../support/ask.js';
import { get } from '../support/routes.js';
import { serve } from '../support/serve.js';

const knows: AuthProvider = {
  authenticate: ({ bearer }) => (bearer === 'good' ? { principal: { project: 'acme', scopes: [] } } : undefined),
};
const routes = [get('/v1/thing', () => ({ status: 200, body: {} }))];

t.test('R-101 wrong tokens from one address are logged once a second, with the number left out', async (t) => {
  const clock = new ManualClock();
  const served = await serve(t, { routes, providers: [knows], clock });
  const wrong = async (times: number) => {
    for (let n = 0; n < times; n++) t.equal((await ask(`${served.url}/v1/thing`)).status, 401);
  };
  await wrong(5);
  t.equal((await ask(`${served.url}/v1/thing`, { headers: { authorization: 'Bearer good' } })).status, 200);
  clock.advance(999);
  await wrong(2);
  clock.advance(1);
  await wrong(3);
  clock.advance(60_000);
  await wrong(1);
  await served.stop();
  const refused = { status: 401, refused: 'no Authorization header', address: '127.0.0.1' };
  t.match(served.requests(), [
    { ...refused, left_out: undefined },
    { status: 200, address: undefined, left_out: undefined },
    { ...refused, left_out: 6 },
    { ...refused, left_out: 2 },
  ]);
  t.match(served.logs.at(-1), { msg: 'stopped', suppressed_lines: 8 });
});

t.test('R-101 requests refused for their Host or Origin are throttled in the access and audit logs', async (t) => {
  const served = await serve(t, { routes });
  for (let n = 0; n < 5; n++) await ask(`${served.url}/v1/thing`, { headers: { origin: 'https://evil.example' } });
  await served.stop();
  t.equal(served.requests().length, 1);
  t.equal(served.logs.filter(({ event }) => event === 'forbidden').length, 1);
});

t.test('a public route that has verified a credential has a line for each request', async (t) => {
  const handle: HttpRoute['handle'] = ({ headers, note }) => {
    if (headers['x-secret'] === 'right') note({ token_name: 'desk' });
    return { status: 200, body: {} };
  };
  const served = await serve(t, { routes: [get('/hook', handle, 'public')] });
  for (const secret of ['wrong', 'right', 'right', 'wrong']) await ask(`${served.url}/hook`, { headers: { 'x-secret': secret } });
  await served.stop();
  t.match(served.requests(), [{ address: '127.0.0.1' }, { token_name: 'desk', address: undefined }, { token_name: 'desk' }]);
  t.equal(served.requests().length, 3);
});

t.test('R-101 each source is throttled separately', async (t) => {
  const clock = new ManualClock();
  const limit = new LogThrottle({ clock });
  t.equal(limit.admit('a'), 0);
  t.equal(limit.admit('b'), 0);
  t.equal(limit.admit('a'), undefined);
  clock.advance(1_000);
  t.equal(limit.admit('b'), 0);
  t.equal(limit.admit('a'), 1);
  t.equal(limit.suppressed, 1);
});

t.test('R-101 all sources together log at most 256 lines a second', async (t) => {
  const clock = new ManualClock();
  const limit = new LogThrottle({ clock });
  const lines = (from: number) =>
    Array.from({ length: 10_000 }, (_, n) => limit.admit(`source ${from + n}`)).filter((suppressed) => suppressed !== undefined)
      .length;
  t.equal(lines(0), 256);
  t.equal(limit.suppressed, 10_000 - 256);
  t.equal(lines(0), 0, 'no line for either');
  clock.advance(1_000);
  t.equal(lines(20_000), 256, 'which take the places of those');
});

t.test('the plugin declares what credentials in headers look like, so that no log line shows one', async (t) => {
  const redact = createRedactor(plugin.credentials ?? {});
  t.equal(redact('refused: bearer   abc.def, Bearer x'), 'refused: [redacted] [redacted]');
  t.equal(redact('auth.bearer did not start'), 'auth.bearer did not start', 'the name of an entry is not a credential');
  t.equal(redact('{"authorization":"Basic x","cookie":["a","b"]}'), '{"authorization":"[redacted]","cookie":"[redacted]"}');
});
