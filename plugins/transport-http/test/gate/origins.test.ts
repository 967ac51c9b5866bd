import type { AuthProvider } from '@plugboard/kernel';
import t from 'tap';
import { isSameOrigin, normalOrigin } from '../../src/gate/origin.js';
import { ask } from '../support/ask.js';
import { echo, get } from '../support/routes.js';
import { serve } from '../support/serve.js';

const routes = [
  get('/v1/thing', () => ({ status: 200, body: {} })),
  get('/probe', () => ({ status: 200, body: {} }), 'public'),
  echo(),
];
const all: AuthProvider = { authenticate: () => ({ principal: { project: 'acme', scopes: [] } }) };

t.test('origins are normalised to the form that browsers send', async (t) => {
  for (const [text, form] of [
    ['https://app.example.org', 'https://app.example.org'],
    ['HTTPS://App.Example.org:443', 'https://app.example.org'],
    ['http://localhost:80', 'http://localhost'],
    ['http://localhost:443', 'http://localhost:443'],
    ['http://[::1]:8080', 'http://[::1]:8080'],
    ['app://obsidian.md', 'app://obsidian.md'],
    ['chrome-extension://abcdef', 'chrome-extension://abcdef'],
  ] as const) {
    t.equal(normalOrigin(text), form, text);
  }
  for (const text of [
    '',
    'null',
    '*',
    'app.example.org',
    'https://',
    'https://a/',
    'https://a b',
    'https://a, https://b',
    'https://u@a',
    'https://a:x',
    'https://*.a',
  ]) {
    t.equal(normalOrigin(text), undefined, text);
  }
});

t.test('a page has the same origin if scheme, name and port match', async (t) => {
  t.ok(isSameOrigin('http://localhost:8080', 'localhost:8080'));
  t.ok(isSameOrigin('http://localhost', 'localhost'));
  t.ok(isSameOrigin('http://localhost', 'localhost:80'));
  t.ok(isSameOrigin('https://agents.example', 'agents.example'), 'behind a proxy that speaks TLS');
  t.notOk(isSameOrigin('http://localhost:8080', 'localhost:8081'));
  t.notOk(isSameOrigin('http://localhost:8080', '127.0.0.1:8080'));
  t.notOk(isSameOrigin('app://localhost', 'localhost'));
  t.notOk(isSameOrigin('http://localhost', ''));
});

t.test('S-08 an open server refuses foreign and null origins', async (t) => {
  const { url, port } = await serve(t, { routes });
  const foreign = [
    'https://evil.example',
    'null',
    '',
    'http://127.0.0.1',
    `http://127.0.0.1:${port + 1}`,
    `https://evil.example:${port}`,
  ];
  for (const origin of [
    ...foreign,
    `http://localhost:${port}`,
    `http://127.0.0.1:${port}, http://b`,
    `app://127.0.0.1:${port}`,
  ]) {
    for (const path of ['/v1/thing', '/v1/nowhere', '/probe']) {
      const { status, headers, error } = await ask(url + path, { headers: { origin } });
      t.equal(status, 403, `${path} from ${origin}`);
      t.match(error, { code: 'origin_not_allowed' });
      t.notOk('access-control-allow-origin' in headers);
    }
  }
  const own = await ask(`${url}/v1/thing`, { headers: { origin: `http://127.0.0.1:${port}` } });
  t.equal(own.status, 200);
  t.notOk('access-control-allow-origin' in own.headers, 'which its own pages do not need');
});

t.test('S-62 an open server refuses what a page of another site loads without an Origin', async (t) => {
  const { url } = await serve(t, { routes });
  const load = (site: string, headers: Readonly<Record<string, string>> = {}) =>
    ask(`${url}/v1/thing`, { headers: { 'sec-fetch-site': site, ...headers } });
  const [script, link, frame] = [
    { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' },
    { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
    { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
  ];
  for (const site of ['cross-site', 'same-site', 'odd']) {
    t.match(await load(site, script), { status: 403, error: { code: 'origin_not_allowed' } }, site);
    t.match(await load(site, frame), { status: 403 }, site);
    t.match(await load(site), { status: 403 }, site);
    t.match(await load(site, link), { status: 200 }, 'a link may be followed');
  }
  for (const site of ['same-origin', 'none']) t.match(await load(site, script), { status: 200 }, site);
  const { headers } = await ask(`${url}/v1/thing`);
  t.equal(headers['cross-origin-resource-policy'], 'same-origin');
  const closed = await serve(t, { routes, providers: [all] });
  const reply = await ask(`${closed.url}/v1/thing`, { headers: { authorization: 'Bearer x', 'sec-fetch-site': 'cross-site' } });
  t.equal(reply.status, 200, 'a page cannot know a token');
});

t.test('an open server accepts listed origins', async (t) => {
  const origin = 'https://app.example.org';
  const { url } = await serve(t, { routes, config: { origins: [origin] } });
  t.equal((await ask(`${url}/v1/thing`, { headers: { origin } })).status, 200);
  t.equal((await ask(`${url}/v1/thing`, { headers: { origin: 'https://other.example.org' } })).status, 403);
});

t.test('C-149 a form or text sent without a preflight starts nothing', async (t) => {
  const ran: unknown[] = [];
  const work = { ...echo('/v1/work'), handle: () => ({ status: 200, body: { ran: ran.push(1) } }) };
  const send = (url: string, headers: Readonly<Record<string, string>>) =>
    ask(`${url}/v1/work`, { method: 'POST', body: '{}', headers });
  const simple = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'];
  const origin = 'https://evil.example';
  for (const [providers, config, status] of [
    [[], {}, 403],
    [[], { origins: [origin] }, 400],
    [[all], { origins: [origin] }, 400],
  ] as const) {
    const { url } = await serve(t, { routes: [work], providers, config });
    const authorization = 'Bearer x'; // which a page could not send without asking
    for (const type of simple) t.equal((await send(url, { origin, authorization, 'content-type': type })).status, status, type);
  }
  t.strictSame(ran, []);
});

t.test('a server that requires credentials accepts every Origin', async (t) => {
  const { url } = await serve(t, { routes, providers: [all] });
  for (const origin of ['https://evil.example', 'null']) {
    const { status, headers } = await ask(`${url}/v1/thing`, { headers: { origin, authorization: 'Bearer x' } });
    t.equal(status, 200);
    t.notOk('access-control-allow-origin' in headers);
    t.notOk('vary' in headers);
  }
});

t.test('a refused Origin is named in the log', async (t) => {
  const served = await serve(t, { routes });
  await ask(`${served.url}/v1/thing`, { headers: { origin: `https://${'x'.repeat(300)}` } });
  await served.stop();
  t.match(served.requests(), [
    { status: 403, error_code: 'origin_not_allowed', refused: `the Origin https://${'x'.repeat(248)}` },
  ]);
});
