import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { LiveSocket } from '../support/live-socket.js';
import { Page } from '../support/page.js';
import { readEventStream } from '../support/server-sent-events.js';
import { Shell } from '../support/shell.js';
import { root } from './snippets.js';

/** Runs the programs of the guide, each as a process of its own. */

const TOKEN = 'token-of-the-web-0123456789';
const guide = new Page(join(root, 'docs/guides/http-frameworks.md'));

async function start(t: Test, program: string) {
  const folder = t.testdir({});
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  for (const { file, text } of guide.blocks) if (file !== undefined) await writeFile(join(folder, file), text);
  const process = new Shell(t, folder, { PLUGBOARD_TOKEN: TOKEN, PORT: '0' }).start(`node ${program}`);
  const url = `http://127.0.0.1:${await process.prints(/port (\d+)/)}`;
  const ask = (path: string, body: object, token: string | undefined = TOKEN) =>
    fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(token !== '' && { authorization: `Bearer ${token}` }) },
      body: JSON.stringify(body),
    });
  return { process, url, ask };
}

const saying = (content: string, more: object = {}) => ({ model: 'assistant', messages: [{ role: 'user', content }], ...more });

for (const program of ['with-express.ts', 'with-fastify.ts', 'with-koa.ts']) {
  t.test(`${program}: routes, streams, WebSockets, the gate and the drain`, async (t) => {
    const { process, url, ask } = await start(t, program);

    t.equal(await (await fetch(url)).text(), 'My own page', 'its own routes stay');
    const chat = await ask('/v1/chat/completions', saying('Hello'));
    t.equal(chat.status, 200);
    t.match(await chat.json(), { choices: [{ message: { role: 'assistant', content: /\S/ } }] });
    t.match(chat.headers.get('x-request-id'), /^req_/);
    const streamed = await ask('/v1/chat/completions', saying('Hello', { stream: true }));
    t.match(streamed.headers.get('content-type'), 'text/event-stream');
    const { done, text } = readEventStream(await streamed.text());
    t.ok(done && text !== '');
    const large = await ask('/v1/chat/completions', saying('x'.repeat(2 ** 20)));
    t.equal(large.status, 200, 'a body that arrives in pieces');

    const unknown = await ask('/v1/chat/completions', saying('Hello'), '');
    t.equal(unknown.status, 401);
    t.match(await unknown.json(), { error: { code: 'invalid_api_key' } });
    t.equal((await ask('/v1/nowhere', {})).status, 404);
    t.equal((await ask('/v1/chat/completions', saying('Hello', { messages: [] }))).status, 400);

    const refused = await LiveSocket.refused(t, { url }, { token: 'wrong-token-0123456789' });
    t.equal(refused.status, 401);
    t.equal((await LiveSocket.refused(t, { url }, { token: TOKEN, path: '/v1/nowhere' })).status, 404);
    const socket = await LiveSocket.open(t, { url }, { token: TOKEN });
    t.match(await socket.ask({ model: 'assistant', input: 'Hello' }), { status: 'completed' });

    t.equal(await process.stop(), 0);
    t.match(await socket.closed, { code: 1012 }, 'the WebSocket is told that the server goes away');
    t.equal(process.stderr.includes('handed over twice'), false);
  });
}
