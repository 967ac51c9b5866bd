import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Message } from '@plugboard/kernel';
import { AddressPolicy } from '@plugboard/kernel/contracts';
import t, { type Test } from 'tap';
import { fetchImage } from '../../src/images/fetch-image.js';
import { open, readAll, readError } from '../connection.js';

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==',
  'base64',
);

async function serve(t: Test, listener: RequestListener): Promise<string> {
  const http = createServer(listener).listen(0, '127.0.0.1');
  await once(http, 'listening');
  t.teardown(() => http.close());
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
}

function image(url: string): readonly Message[] {
  return [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }];
}

t.test('an image is fetched only where the provider does not take its URL (AI-13)', async (t) => {
  const url = await serve(t, ({ url }, response) => {
    if (url === '/moved') response.writeHead(302, { location: '/a.png' }).end();
    else response.end(PNG);
  });
  const gemini = await open(t, 'google', { allowPrivate: true });
  await readAll(gemini, { messages: image(`${url}/moved`) });
  t.match(JSON.stringify(gemini.server.requests[0]?.body), `"mimeType":"image/png","data":"${PNG.toString('base64')}"`);
  const claude = await open(t, 'anthropic');
  await readAll(claude, { messages: image(`${url}/a.png`) });
  t.match(JSON.stringify(claude.server.requests[0]?.body), `"source":{"type":"url","url":"${url}/a.png"}`);
});

t.test('images are not fetched from private addresses, however they are written (S-07)', async (t) => {
  let asked = 0;
  const url = await serve(t, (_, response) => {
    asked++;
    response.end(PNG);
  });
  const gemini = await open(t, 'google');
  const { port } = new URL(url);
  for (const address of [
    url,
    `http://localhost:${port}`,
    `http://[::1]:${port}`,
    `http://[::ffff:127.0.0.1]:${port}`,
    `http://2130706433:${port}`,
  ])
    t.match(await readError(gemini, { messages: image(`${address}/a.png`) }), {
      isRequestFault: true,
      message: /cannot be reached \(its address is private\)/,
    });
  t.equal(asked, 0);
  for (const address of [
    '10.0.0.7',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    'fd00::1',
    'fe80::1',
    '64:ff9b::a00:7',
    '::ffff:10.0.0.7',
    'x',
  ])
    t.notOk(new AddressPolicy().allows(address), address);
  for (const address of ['93.184.216.34', '2606:2800:220:1::1', '::ffff:93.184.216.34'])
    t.ok(new AddressPolicy().allows(address), address);
});

t.test('a redirect leads to no private address (S-07)', async (t) => {
  let asked = 0;
  const target = await serve(t, (_, response) => {
    asked++;
    response.end(PNG);
  });
  const { port } = new URL(target);
  const first = await serve(t, ({ url }, response) => {
    const host = url === '/name' ? 'localhost' : '127.0.0.2';
    response.writeHead(302, { location: `http://${host}:${port}/a.png` }).end();
  });
  // The first server counts as public, by its address; the other does not.
  let allowed = 1;
  const limits = { limit: 1000, addresses: new AddressPolicy(() => allowed-- > 0), reserve: () => {} };
  for (const path of ['/address', '/name']) {
    allowed = 1;
    await t.rejects(fetchImage(first + path, limits, new AbortController().signal), { message: /its address is private/ });
  }
  t.equal(asked, 0);
});

t.test('an image that cannot be fetched is named', async (t) => {
  const url = await serve(t, ({ url }, response) => {
    if (url === '/large') response.end(Buffer.alloc(3000));
    else if (url === '/page') response.end('<html>');
    else if (url === '/loop') response.writeHead(302, { location: '/loop' }).end();
    else response.writeHead(404).end();
  });
  const { server, ...gemini } = await open(t, 'google', { allowPrivate: true, imageLimit: '2kb' });
  const reason = async (path: string) => (await readError(gemini, { messages: image(url + path) })).message;
  t.match(await reason('/large'), /the image of 127.0.0.1 is larger than .* \(imageLimit\)/);
  t.match(await reason('/page'), /127.0.0.1 sent no PNG, JPEG, GIF or WebP image/);
  t.match(await reason('/loop'), /127.0.0.1 redirects more than 3 times/);
  t.match(await reason('/none'), /127.0.0.1 answered 404/);
  t.match((await readError(gemini, { messages: image('ftp://x/a.png') })).message, /ftp: is not http or https/);
  t.match((await readError(gemini, { messages: image('no url') })).message, /an image cannot be sent/);
  t.equal(server.requests.length, 0);
});
