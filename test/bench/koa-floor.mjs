// The floor: a bare Koa route with koa-bodyparser and one undici call, without an agent, events or
// checks.
import { createRequire } from 'node:module';
import Router from '@koa/router';
import Koa from 'koa';
import bodyParser from 'koa-bodyparser';

// The undici of the model connections. The workspace has an older one too, which sends requests on
// used sockets without looking for unexpected bytes first.
const { Pool } = createRequire(new URL('../../plugins/model-openai/package.json', import.meta.url))('undici');

const pool = new Pool(`http://127.0.0.1:${process.env.MODEL_PORT}`, { connections: null, pipelining: 1 });
const headers = { 'content-type': 'application/json' };

const router = new Router();
router.post('/v1/chat/completions', async (ctx) => {
  const answer = await pool.request({
    method: 'POST',
    path: '/v1/chat/completions',
    headers,
    body: JSON.stringify(ctx.request.body),
  });
  ctx.status = answer.statusCode;
  ctx.set('content-type', answer.headers['content-type']);
  ctx.body = ctx.request.body.stream ? answer.body : await answer.body.text();
});

const app = new Koa();
app.silent = true;
app.use(bodyParser());
app.use(router.routes());
const server = app.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
server.keepAliveTimeout = 60_000;
process.on('disconnect', () => process.exit());
