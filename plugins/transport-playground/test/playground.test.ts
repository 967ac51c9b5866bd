import { gunzipSync } from 'node:zlib';
import { AuthProviders, Transports } from '@plugboard/kernel';
import { pluginContract, testContext } from '@plugboard/testing';
import http, { HttpRoutes, HttpUpgrades } from '@plugboard/transport-http';
import t, { type Test } from 'tap';
import plugin from '../src/index.js';
import { readPageFiles } from '../src/page-files.js';

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html dompurify";

/** What the first visit may load, and everything that may come later, in bytes after gzip. */
const BUDGET = { first: 60 * 1024, later: 90 * 1024 };

/** The first visit may ask for this many files. */
const MAX_FILES = 6;

async function serve(t: Test, { config, auth = false }: { config?: object; auth?: boolean } = {}) {
  const page = testContext(plugin, { entry: 'transports.playground', config });
  const server = testContext(http, { entry: 'transports.http', config: { port: 0 } });
  if (auth) {
    for (const ctx of [page, server]) ctx.provide(AuthProviders, { authenticate: () => ({ refused: 'everyone' }) });
  }
  const routes = page.contributions().filter(({ point }) => point === HttpRoutes.id);
  for (const { name } of routes) server.provide(HttpRoutes, page.contributed(HttpRoutes, name), name);
  const live = page.contributed(HttpRoutes, '/playground');
  page.provide(HttpRoutes, { ...live, path: '/v1/conversations' }, 'conversations');
  page.provide(HttpUpgrades, { path: '/v1/live', access: ['chat'], handle: () => {} }, 'websocket');
  await page.lifecycle.start?.(new AbortController().signal);
  await server.lifecycle.start?.(new AbortController().signal);
  t.teardown(() => server.lifecycle.stop?.(AbortSignal.abort()));
  const url = String(server.contributed(Transports).address());
  const get = (path: string, headers: Record<string, string> = {}) => fetch(url + path, { headers, redirect: 'manual' });
  return { url, get, page };
}

t.test('fulfils the plugin contract', async (t) => {
  pluginContract(t.test, plugin, { packageDir: new URL('..', import.meta.url) });
});

t.test('S-27 the page and its files need no token and carry the security headers', async (t) => {
  const { get, page } = await serve(t, { auth: true });
  t.equal(page.contributed(HttpRoutes, '/playground').link, 'playground', 'shown by the start banner');
  for (const [path, type] of [
    ['/playground', 'text/html; charset=utf-8'],
    ['/playground/app.js', 'text/javascript; charset=utf-8'],
    ['/playground/style.css', 'text/css; charset=utf-8'],
    ['/playground/icon.svg', 'image/svg+xml'],
  ] as const) {
    const reply = await get(path);
    t.equal(reply.status, 200, path);
    t.equal(reply.headers.get('content-type'), type);
    t.equal(reply.headers.get('content-security-policy'), POLICY);
    t.equal(reply.headers.get('x-content-type-options'), 'nosniff');
    t.equal(reply.headers.get('referrer-policy'), 'no-referrer');
    t.equal(reply.headers.get('cross-origin-opener-policy'), 'same-origin');
    t.equal(reply.headers.get('set-cookie'), null);
  }
});

t.test('S-16 only listed files are served, whatever the path looks like', async (t) => {
  const { get } = await serve(t);
  for (const path of [
    'package.json',
    '..%2fpackage.json',
    '../package.json',
    '%2e%2e/src/index.ts',
    'page',
    'page/',
    'views/app.js',
    'constructor',
    '__proto__',
    'app.js/',
    'app.js%00',
  ]) {
    t.equal((await get(`/playground/${path}`)).status, 404, path);
  }
});

t.test('a browser that has a file gets a 304, and gzip is used only where it is accepted', async (t) => {
  const { get } = await serve(t);
  const first = await get('/playground/style.css', { 'accept-encoding': 'gzip;q=0, br' });
  t.equal(first.headers.get('content-encoding'), null);
  t.equal(first.headers.get('vary'), 'accept-encoding');
  const tag = String(first.headers.get('etag'));
  for (const sent of [tag, `W/${tag}`, `"other", ${tag}`]) {
    const again = await get('/playground/style.css', { 'if-none-match': sent });
    t.equal(again.status, 304, sent);
    t.equal(again.headers.get('etag'), tag);
  }
  t.equal((await get('/playground/style.css', { 'if-none-match': '"other"' })).status, 200);
  const zipped = await get('/playground/style.css', { 'accept-encoding': 'br, gzip' });
  t.equal(zipped.headers.get('content-encoding'), 'gzip');
  t.equal(await zipped.text(), await first.text());
});

t.test('the settings say what the page needs before there is a token', async (t) => {
  const open = await serve(t);
  const reply = await open.get('/playground/settings.json');
  t.equal(reply.headers.get('cache-control'), 'no-store');
  t.match(await reply.json(), {
    title: 'Plugboard',
    version: /^\d+\.\d+\.\d+$/,
    docs: null,
    token: false,
    routes: ['/v1/live', '/v1/conversations'],
  });
  const config = { title: 'Support', docs: 'https://docs.example/agents', suggestions: ['Where is my order?'] };
  const closed = await serve(t, { config, auth: true });
  t.match(await (await closed.get('/playground/settings.json')).json(), { ...config, token: true });
});

t.test('a browser that opens / is redirected to the page, other clients get 404', async (t) => {
  const { get } = await serve(t);
  const browser = await get('/', { accept: 'text/html,application/xhtml+xml' });
  t.equal(browser.status, 303);
  t.equal(browser.headers.get('location'), 'playground');
  t.equal((await get('/', { accept: '*/*' })).status, 404);
  const { get: getOther } = await serve(t, { config: { home: false } });
  t.equal((await getOther('/', { accept: 'text/html' })).status, 404);
});

t.test('a link to documentation must be a web address', async (t) => {
  t.throws(() => testContext(plugin, { config: { docs: 'javascript:alert(1)' } }), /docs.*not a URL that begins with http/);
  t.throws(() => testContext(plugin, { config: { docs: 'docs.example' } }), /docs/);
});

t.test('the page loads files of its own only, and nothing in it is inline', async (t) => {
  const files = await readPageFiles();
  const page = textOf(files, 'index.html');
  t.notMatch(page, /<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=/);
  const imported = [...files.keys()].flatMap((name) => importsOf(files, name, /\bimport\("\.\/([^"]+)"\)/g));
  t.ok(imported.length >= 2, 'Markdown and colours are loaded when they are needed');
  for (const name of [...firstVisit(files), ...imported]) t.ok(files.has(name), name);
});

t.test('the first visit loads few small files, and what comes later has a budget too', async (t) => {
  const files = await readPageFiles();
  for (const [path, { gzipped, bytes }] of files) t.equal(gunzipSync(gzipped).compare(bytes), 0, path);
  const first = firstVisit(files);
  const later = files.keys().filter((name) => !first.has(name));
  const sizeOf = (names: Iterable<string>) =>
    Array.from(names, (name) => files.get(name)?.gzipped.length ?? 0).reduce((a, b) => a + b, 0);
  const sizes = { first: sizeOf(first), later: sizeOf(later) };
  t.ok(first.size <= MAX_FILES, [...first].join());
  t.ok(sizes.first > 0 && sizes.first <= BUDGET.first, `first: ${sizes.first} bytes`);
  t.ok(sizes.later > 0 && sizes.later <= BUDGET.later, `later: ${sizes.later} bytes`);
});

type PageFiles = Awaited<ReturnType<typeof readPageFiles>>;

/** The page, the files that it names, and what those import at once. */
function firstVisit(files: PageFiles): ReadonlySet<string> {
  const named = new Set(['index.html', ...importsOf(files, 'index.html', /(?:href|src)="playground\/([^"]+)"/g)]);
  for (const name of named) for (const one of importsOf(files, name, /\b(?:from|import)"\.\/([^"]+)"/g)) named.add(one);
  return named;
}

function importsOf(files: PageFiles, name: string, pattern: RegExp): string[] {
  return [...textOf(files, name).matchAll(pattern)].map(([, file = '']) => file);
}

function textOf(files: PageFiles, name: string): string {
  return Buffer.from(files.get(name)?.bytes ?? []).toString();
}

t.test('a request for approval takes the place of the call whose agent needs it, and of no other', async (t) => {
  const { addItem, itemFrom } = await import(new URL('../page/turn-items.js', import.meta.url).href);
  const turn = { items: [] };
  for (const name of ['re', 'research']) addItem(turn, itemFrom({ type: 'mcp_call', id: name, name, status: 'incomplete' }));
  addItem(turn, itemFrom({ type: 'mcp_approval_request', id: 'asked', server_label: 'research › desk', name: 'lookup' }));
  t.match(turn.items, [{ id: 're' }, { id: 'asked' }]);
  addItem(turn, itemFrom({ type: 'mcp_call', id: 'ran', name: 'research', approval_request_id: 'asked', output: 'bees' }));
  t.match(turn.items, [{ id: 're' }, { id: 'ran' }]);
});
