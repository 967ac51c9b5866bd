import { join } from 'node:path';
import t from 'tap';
import { Page } from '../../support/page.js';
import { ASSISTANT, saying, TestServer, TRANSPORTS } from '../../support/test-server.js';

const guide = new Page(join(import.meta.dirname, '../../../docs/guides/distributions.md'));
const compress = guide.blocks.find(({ file }) => file === 'compress.js')?.text ?? '';
const [compressed] = guide.in('yaml').map(({ text }) => text);

/** Middleware of a distribution that does what the query asks for. */
const WHIMS = `
  import { definePlugin } from '@plugboard/kernel';
  import { HttpMiddleware } from '@plugboard/transport-http';

  const whims = {
    throw: () => { throw new Error('secret detail'); },
    refuse: (ctx) => ctx.throw(403, 'not from here'),
    answer: (ctx) => { ctx.body = { closed: 'today' }; },
    nothing: () => {},
  };

  export default definePlugin({
    name: 'whims',
    apiVersion: 1,
    summary: 'Middleware of a test',
    configSchema: { type: 'object', properties: {} },
    register(ctx) {
      ctx.contribute(HttpMiddleware, async (context, next) => {
        const whim = whims[context.query.whim];
        if (whim) return whim(context);
        await next();
        context.set('x-after', 'seen');
      });
    },
  });
`;
const files = { 'compress.js': compress, 'whims.js': WHIMS };
const yaml = `${TRANSPORTS}${ASSISTANT}${compressed}  whims: { use: ./whims.js }\n`;
const app = await TestServer.start(t, yaml, { files });
const BROTLI = { 'accept-encoding': 'br' };

t.test('koa-compress of the guide compresses a long answer', async (t) => {
  const content = 'a long answer '.repeat(200);
  app.models.enqueue({ text: content });
  const { status, headers, body } = await app.chat(saying('Hi'), BROTLI);
  t.equal(status, 200);
  t.match(body, { choices: [{ message: { content } }] });
  t.equal(headers.get('content-encoding'), 'br');
  t.equal(headers.get('x-after'), 'seen');
});

t.test('a streamed answer passes as it comes, with the headers of the middleware', async (t) => {
  const gate = Promise.withResolvers<void>();
  app.models.enqueue({ text: ['first ', gate.promise, 'second'] });
  const stream = await app.open(saying('Hi'), BROTLI);
  t.equal(stream.headers.get('content-encoding'), null);
  t.equal(stream.headers.get('x-after'), 'seen');
  await stream.until('first');
  gate.resolve();
  await stream.until('second');
  await stream.end();
  t.match(stream.received, /\[DONE\]/);
});

t.test('errors of the server and of the middleware have the body of the protocol', async (t) => {
  app.models.enqueue({ status: 400 });
  for (const [path, status, message] of [
    ['/v1/chat/completions', 502, /./],
    ['/v1/nowhere', 404, /^Invalid URL/],
    ['/v1/models?whim=throw', 500, /server log/],
    ['/v1/models?whim=refuse', 403, /^not from here$/],
    ['/v1/models?whim=nothing', 404, /^Invalid URL \(GET \/v1\/models\)$/],
  ] as const) {
    const body = path.endsWith('completions') ? saying('Hi') : undefined;
    const reply = await app.request(body ? 'POST' : 'GET', path, BROTLI, body);
    t.equal(reply.status, status, path);
    t.match(reply.body, { error: { message, type: /./, code: status === 500 ? 'internal_error' : undefined } });
    t.match(reply.headers.get('x-request-id'), /^req_/);
  }
  const failure = app.started.logs.find(({ msg }) => msg === 'a request failed with an unexpected error');
  t.match(failure, { err: { message: 'secret detail', stack: /whims\.js/ } });
});

t.test('middleware that answers itself is the answer', async (t) => {
  const reply = await app.get('/v1/models?whim=answer');
  t.same([reply.status, reply.body], [200, { closed: 'today' }]);
});
