import { eventually, ManualClock } from '@plugboard/testing';
import type { Middleware } from 'koa';
import compress from 'koa-compress';
import t from 'tap';
import { HttpError } from '../../src/index.js';
import { RawClient, replyOf } from '../support/raw-client.js';
import { echo, errorOf, get, postJson } from '../support/routes.js';
import { serve } from '../support/serve.js';

const hello = get('/v1/hello', () => ({ status: 200, headers: { etag: '"1"' }, body: { text: 'hello' } }));

/** Says its name on the way in and on the way out. */
function named(name: string, order: string[]): Middleware {
  return async (_ctx, next) => {
    order.push(`${name} in`);
    await next();
    order.push(`${name} out`);
  };
}

t.test('middleware runs in file order around the route, before authentication', async (t) => {
  const order: string[] = [];
  const { url } = await serve(t, {
    routes: [get('/v1/hello', () => ({ status: order.push('route') && 200 }))],
    providers: [
      {
        authenticate: ({ bearer }) => {
          order.push('authentication');
          return bearer === 'good' ? { principal: { project: 'p', scopes: ['chat'] } } : { refused: 'no' };
        },
      },
    ],
    middleware: [named('first', order), named('second', order)],
  });
  t.equal((await fetch(`${url}/v1/hello`, { headers: { authorization: 'Bearer good' } })).status, 200);
  t.same(order, ['first in', 'second in', 'authentication', 'route', 'second out', 'first out']);
  order.length = 0;
  t.equal((await fetch(`${url}/v1/hello`)).status, 401);
  t.same(order, ['first in', 'second in', 'authentication']);
});

t.test('middleware sees and changes status, headers and body of a reply', async (t) => {
  const seen: unknown[] = [];
  const { url } = await serve(t, {
    routes: [hello],
    middleware: [
      async (ctx, next) => {
        ctx.set('x-before', 'yes');
        await next();
        seen.push(ctx.status, ctx.type, ctx.body, ctx.state.requestId);
        ctx.status = 201;
        ctx.body = { text: `${JSON.parse(String(ctx.body)).text} again` };
      },
    ],
  });
  const reply = await fetch(`${url}/v1/hello`);
  t.equal(reply.status, 201);
  t.same(await reply.json(), { text: 'hello again' });
  t.match(Object.fromEntries(reply.headers), { 'x-before': 'yes', etag: '"1"', 'x-request-id': /^req_/ });
  t.same(seen, [200, 'application/json', '{"text":"hello"}', reply.headers.get('x-request-id')]);
});

t.test('koa-compress compresses replies, and leaves streams and small replies alone', async (t) => {
  const text = 'long '.repeat(1000);
  let next: (item: string) => void = () => {};
  async function* events() {
    yield 'data: 1\n\n';
    yield await new Promise<string>((resolve) => {
      next = resolve;
    });
  }
  const served = await serve(t, {
    routes: [
      hello,
      get('/v1/long', () => ({ status: 200, body: { text } })),
      get('/v1/events', () => ({ status: 200, headers: { 'content-type': 'text/event-stream' }, body: events() })),
    ],
    middleware: [compress()],
    config: { origins: ['https://app.example.org'] },
  });
  const ask = async (path: string) => {
    const client = await RawClient.open(served.port);
    client.send(`GET /v1/${path} HTTP/1.1`, 'Host: 127.0.0.1', 'Accept-Encoding: br', '', '');
    return client;
  };
  const long = await (await ask('long')).until(/\r\n0\r\n\r\n$/);
  const { headers, body } = replyOf(long);
  t.match(headers, { 'content-encoding': 'br', vary: 'Origin, Accept-Encoding', 'x-request-id': /^req_/ });
  t.ok(body.length < 500, 'it is small');
  const unpacked = await fetch(`${served.url}/v1/long`, { headers: { 'accept-encoding': 'br' } });
  t.same(await unpacked.json(), { text });
  t.equal(replyOf(await (await ask('hello')).until(/\}$/)).body, '{"text":"hello"}');

  const streaming = await ask('events');
  t.match(await streaming.until(/data: 1\n\n/), /content-type: text\/event-stream/);
  next('data: 2\n\n');
  t.notMatch(await streaming.until(/data: 2\n\n\r\n0\r\n\r\n$/), /content-encoding/i);
  await served.stop();
  t.match(
    served.requests().map(({ status, outcome }) => [status, outcome]),
    [
      [200, 'ok'],
      [200, 'ok'],
      [200, 'ok'],
      [200, 'ok'],
    ],
  );
});

t.test('headers that middleware sets before and after next() are on streams and errors too', async (t) => {
  async function* body() {
    yield 'streamed';
  }
  const { url } = await serve(t, {
    routes: [
      get('/v1/stream', () => ({ status: 200, body: body() })),
      get('/v1/error', () => {
        throw new HttpError(418, 'no tea', { headers: { 'x-tea': 'none' } });
      }),
    ],
    middleware: [
      async (ctx, next) => {
        ctx.set('x-frame-options', 'DENY');
        try {
          await next();
        } finally {
          ctx.set('x-response-time', '1');
        }
      },
    ],
  });
  for (const [path, status] of [
    ['stream', 200],
    ['error', 418],
    ['nowhere', 404],
  ] as const) {
    const reply = await fetch(`${url}/v1/${path}`);
    t.equal(reply.status, status);
    t.match(Object.fromEntries(reply.headers), { 'x-frame-options': 'DENY', 'x-response-time': '1' });
    t.equal(reply.headers.get('x-tea'), path === 'error' ? 'none' : null);
  }
});

t.test('what middleware throws is answered as an error, and its details are logged', async (t) => {
  const throws: Record<string, (ctx: Parameters<Middleware>[0]) => never> = {
    plain: () => {
      throw new Error('secret detail');
    },
    status: (ctx) => ctx.throw(402, 'pay first'),
    hidden: (ctx) => ctx.throw(503, 'secret detail'),
    http: () => {
      throw new HttpError(451, 'not here', { code: 'legal' });
    },
  };
  const served = await serve(t, {
    routes: [hello],
    middleware: [
      async (ctx, next) => {
        throws[String(ctx.query.before)]?.(ctx);
        await next();
        throws[String(ctx.query.after)]?.(ctx);
      },
    ],
  });
  for (const when of ['before', 'after']) {
    const ask = async (what: string) => {
      const reply = await fetch(`${served.url}/v1/hello?${when}=${what}`);
      t.equal(reply.headers.get('etag'), null);
      return { status: reply.status, ...(await errorOf(reply)) };
    };
    t.match(await ask('plain'), { status: 500, code: 'internal_error', message: /server log/ });
    t.match(await ask('status'), { status: 402, code: null, message: 'pay first' });
    t.match(await ask('hidden'), { status: 500, message: /server log/ });
    t.match(await ask('http'), { status: 451, code: 'legal', message: 'not here' });
  }
  const errors = served.logs.filter(({ level }) => level === 'error');
  t.equal(errors.length, 4);
  t.match(errors[0], { err: { message: 'secret detail', stack: /middleware\.test/ }, route: '/v1/hello' });
});

t.test('middleware that throws after a stream was returned lets go of the stream', async (t) => {
  let left = false;
  const body = {
    next: async () => ({ done: false as const, value: 'never sent' }),
    return: async () => {
      left = true;
      return { done: true as const, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
  const { url } = await serve(t, {
    routes: [get('/v1/stream', () => ({ status: 200, body }))],
    middleware: [
      async (ctx, next) => {
        await next();
        if (ctx.query.replaced) ctx.body = 'replaced';
        else throw new Error('too late');
      },
    ],
  });
  t.equal((await fetch(`${url}/v1/stream`)).status, 500);
  t.equal(left, true);
  left = false;
  t.equal(await (await fetch(`${url}/v1/stream?replaced=1`)).text(), 'replaced');
  t.equal(left, true);
});

t.test('middleware that replies itself, or not at all, keeps the route from running', async (t) => {
  let runs = 0;
  const clock = new ManualClock();
  const served = await serve(t, {
    clock,
    routes: [{ ...echo(), handle: () => ({ status: 200, body: { runs: ++runs } }) }],
    middleware: [
      async (ctx, next) => {
        if (ctx.query.as === 'text') ctx.body = 'closed today';
        else if (ctx.query.as === 'status') ctx.status = 403;
        else if (ctx.query.as === 'raw') {
          ctx.respond = false;
          ctx.res.writeHead(299).end('raw');
        } else if (ctx.query.as !== 'nothing') await next();
      },
    ],
  });
  const ask = (as: string) => {
    clock.advance(1_000); // lines about callers that nothing has identified are throttled
    return postJson(`${served.url}/v1/echo?as=${as}`, '{}');
  };
  const text = await ask('text');
  t.same([text.status, await text.text()], [200, 'closed today']);
  const status = await ask('status');
  t.equal(status.status, 403);
  t.match(await errorOf(status), { message: 'Forbidden' });
  const nothing = await ask('nothing');
  t.equal(nothing.status, 404);
  t.match(await errorOf(nothing), { message: 'Invalid URL (POST /v1/echo)' });
  const raw = await ask('raw');
  t.same([raw.status, await raw.text()], [299, 'raw']);
  t.equal(runs, 0);
  t.equal((await ask('')).status, 200);
  await served.stop();
  t.match(
    served.requests().map((line) => line.status),
    [200, 403, 404, 299, 200],
  );
});

t.test('a reply of middleware reaches a caller that still sends, and then the connection is closed', async (t) => {
  const { port } = await serve(t, {
    routes: [echo()],
    middleware: [
      async (ctx) => {
        ctx.status = 429;
        ctx.body = { slow: 'down' };
      },
    ],
  });
  const client = await RawClient.open(port);
  client.send('POST /v1/echo HTTP/1.1', 'Host: 127.0.0.1', 'Content-Length: 1000000', '', '{');
  const { status, headers, body } = replyOf(await client.until(/\}$/));
  t.same([status, headers.connection, body], [429, 'close', '{"slow":"down"}']);
});

t.test('a caller that leaves ends the request while middleware waits', async (t) => {
  let entered = () => {};
  const inside = new Promise<void>((resolve) => {
    entered = resolve;
  });
  let open: () => void = () => {};
  const served = await serve(t, {
    routes: [hello],
    middleware: [
      async (_ctx, next) => {
        entered();
        await new Promise<void>((resolve) => {
          open = resolve;
        });
        await next();
      },
    ],
  });
  const client = await RawClient.open(served.port);
  client.send('GET /v1/hello HTTP/1.1', 'Host: 127.0.0.1', '', '');
  await inside;
  client.socket.destroy();
  await eventually(() => served.requests().length > 0);
  open();
  await served.stop();
  t.match(served.requests(), [{ status: 499, outcome: 'cancelled_by_client' }]);
});

t.test('R-012 the connection of a compressed reply that nobody reads is destroyed', async (t) => {
  const clock = new ManualClock();
  const noise = Array.from({ length: 300_000 }, (_, at) => Math.sin(at).toString(36)).join('');
  const served = await serve(t, {
    routes: [get('/v1/noise', () => ({ status: 200, body: noise.repeat(4) }))],
    middleware: [compress({ gzip: { level: 1 } })],
    clock,
  });
  const client = await RawClient.open(served.port);
  client.socket.pause();
  client.send('GET /v1/noise HTTP/1.1', 'Host: 127.0.0.1', 'Accept-Encoding: gzip', '', '');
  await eventually(() => clock.pending > 0);
  await eventually(() => {
    clock.advance(30_000);
    return served.requests().length > 0;
  });
  t.match(served.requests(), [{ status: 200, outcome: 'timeout' }]);
  client.socket.destroy();
});
