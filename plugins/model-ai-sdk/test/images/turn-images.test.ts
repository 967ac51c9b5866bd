import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Message } from '@plugboard/kernel';
import { Account, Budget, OPEN } from '@plugboard/kernel/contracts';
import t, { type Test } from 'tap';
import { open, readAll, readError } from '../connection.js';

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==',
  'base64',
);
const MIB = 2 ** 20;

/** A server of images that counts how many are fetched, and how many at once. */
async function imageServer(t: Test, size = PNG.length) {
  const state = { asked: 0, running: 0, most: 0, gate: Promise.resolve() };
  const http = createServer((_, response) => {
    state.asked += 1;
    state.running += 1;
    state.most = Math.max(state.most, state.running);
    response.on('close', () => {
      state.running -= 1;
    });
    const body = Buffer.concat([PNG, Buffer.alloc(size - PNG.length)]);
    void state.gate.then(() => response.end(body));
  }).listen(0, '127.0.0.1');
  await once(http, 'listening');
  t.teardown(() => http.close());
  return { state, url: `http://127.0.0.1:${(http.address() as AddressInfo).port}` };
}

const asking = (urls: readonly string[]): Message => ({
  role: 'user',
  content: urls.map((url) => ({ type: 'image_url', image_url: { url } })),
});
const several = (url: string, count: number) => Array.from({ length: count }, (_, index) => `${url}/${index}.png`);

/** An account of a turn, and its budget. */
function accountOf(limit = 512 * MIB) {
  const budget = new Budget({ name: 'memory', unit: 'bytes', limit, setting: 'limits.memory' });
  const account = new Account(budget, OPEN);
  return { budget, account, end: account.hold() };
}

t.test('S-68 a request fetches at most 20 images, the newest ones of its conversation', async (t) => {
  const { url, state } = await imageServer(t);
  const { server, ...gemini } = await open(t, 'google', { allowPrivate: true });
  await readAll(gemini, { messages: [asking(several(url, 20))] });
  t.equal(state.asked, 20);
  t.match(await readError(gemini, { messages: [asking(several(url, 21))] }), {
    isRequestFault: true,
    message: /an image cannot be sent: a request may have at most 20 images by address/,
  });
  t.equal(state.asked, 20, 'and none of a request with more');
  const earlier = [asking(several(url, 19)), { role: 'assistant', content: 'Nice.' } as const];
  await readAll(gemini, { messages: [...earlier, asking([`${url}/a.png`, `${url}/b.png`])] });
  t.equal(state.asked, 40);
  const sent = JSON.stringify(server.requests.at(-1)?.body);
  t.equal(sent.split('inlineData').length - 1, 20);
  t.match(sent, /\[an image that this model cannot be sent was left out\]/, 'the oldest one is a note');
});

t.test('S-68 the steps and attempts of a turn share what was fetched, which its account has reserved', async (t) => {
  const { url, state } = await imageServer(t, MIB);
  const gemini = await open(t, 'google', { allowPrivate: true });
  const { budget, account, end } = accountOf();
  const request = { messages: [asking([`${url}/a.png`, `${url}/a.png`, `${url}/b.png`])], account };
  await readAll(gemini, request);
  await readAll(gemini, request);
  t.equal(state.asked, 2, 'each address once');
  t.ok(budget.used >= 2 * Account.costOf((MIB * 4) / 3), `${budget.used} bytes for two images of 1 MiB`);
  end();
  t.equal(budget.used, 0);
  const other = accountOf();
  await readAll(gemini, { ...request, account: other.account });
  t.equal(state.asked, 4, 'another turn fetches them again');
});

t.test('S-68 without memory a new image is refused as overload, and one of the history is left out', async (t) => {
  const { url, state } = await imageServer(t, 2 * MIB);
  const gemini = await open(t, 'google', { allowPrivate: true });
  const { budget, account, end } = accountOf(16 * MIB); // one caller may have half of it: less than one image needs
  const image = asking([`${url}/a.png`]);
  t.match(await readError(gemini, { messages: [image], account }), { name: 'TurnError', message: /limits\.memory/ });
  t.ok(budget.used <= 64 * 1024, 'what was reserved for its beginning is given back');
  await readAll(gemini, {
    messages: [image, { role: 'assistant', content: 'Nice.' }, { role: 'user', content: 'And?' }],
    account,
  });
  t.equal(state.asked, 2);
  end();
  t.equal(budget.used, 0);
});

t.test('S-68 two images are fetched at once for one caller, and others do not wait for them', async (t) => {
  const { url, state } = await imageServer(t);
  const gemini = await open(t, 'google', { allowPrivate: true });
  const ask = (name: string, account: Account) => readAll(gemini, { messages: [asking(several(`${url}/${name}`, 3))], account });
  const gate = Promise.withResolvers<void>();
  state.gate = gate.promise;
  const callers = Array.from({ length: 8 }, () => accountOf().account);
  const asked = Promise.all(callers.map((account, index) => ask(String(index), account)));
  while (state.running < 2) await new Promise((resolve) => setImmediate(resolve));
  gate.resolve();
  await asked;
  t.equal(state.asked, 24);
  t.ok(state.most <= 2, `${state.most} at once`);
  const budget = new Budget({ name: 'memory', unit: 'bytes', limit: 512 * MIB, setting: 'limits.memory' });
  const others = ['a', 'b', 'c'].map((tokenId) => new Account(budget, { ...OPEN, tokenId }));
  for (const account of others) account.hold();
  const other = Promise.withResolvers<void>();
  state.gate = other.promise;
  const rest = Promise.all([...others, ...others].map((account, index) => ask(`other-${index}`, account)));
  while (state.running < 6) await new Promise((resolve) => setImmediate(resolve)); // never, if they waited for each other
  other.resolve();
  await rest;
  t.equal(state.most, 6);
});

t.test('S-68 a cancelled turn fetches nothing more, and the next one is not stopped by it', async (t) => {
  const sockets: (() => void)[] = [];
  const http = createServer((request, response) => {
    if (request.url === '/slow') sockets.push(() => response.end(PNG));
    else response.end(PNG);
  }).listen(0, '127.0.0.1');
  await once(http, 'listening');
  t.teardown(() => http.close());
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const gemini = await open(t, 'google', { allowPrivate: true });
  const { budget, account, end } = accountOf();
  const aborts = [1, 2, 3].map(() => new AbortController());
  const cancelled = aborts.map(({ signal }) =>
    readAll(gemini, { messages: [asking([`${url}/slow`])], account: accountOf().account }, signal),
  );
  const settled = Promise.allSettled(cancelled);
  while (sockets.length < 2) await new Promise((resolve) => setImmediate(resolve));
  for (const abort of aborts) abort.abort(new Error('cancelled'));
  t.match(await settled, Array(3).fill({ status: 'rejected', reason: { message: 'cancelled' } }));
  t.equal(sockets.length, 2, 'the third one waited, and was never fetched');
  await readAll(gemini, { messages: [asking([`${url}/a.png`, `${url}/b.png`])], account });
  end();
  t.equal(budget.used, 0);
});
