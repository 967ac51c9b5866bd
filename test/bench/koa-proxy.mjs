// The plain way: Koa, router and parser; the model read with node:http, each event parsed and written again.
import { Agent, request } from 'node:http';
import { Readable } from 'node:stream';
import Router from '@koa/router';
import Koa from 'koa';
import bodyParser from 'koa-bodyparser';

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
const port = Number(process.env.MODEL_PORT);

function ask(body) {
  return new Promise((resolve, reject) => {
    const onward = request(
      {
        agent,
        host: '127.0.0.1',
        port,
        method: 'POST',
        path: '/v1/chat/completions',
        headers: { 'content-type': 'application/json' },
      },
      resolve,
    );
    onward.on('error', reject);
    onward.end(JSON.stringify(body));
  });
}

async function* events(answer) {
  let rest = '';
  answer.setEncoding('utf8');
  for await (const piece of answer) {
    const parts = (rest + piece).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      const data = part.slice('data: '.length);
      yield data === '[DONE]' ? 'data: [DONE]\n\n' : `data: ${JSON.stringify(JSON.parse(data))}\n\n`;
    }
  }
}

const router = new Router();
router.post('/v1/chat/completions', async (ctx) => {
  const answer = await ask(ctx.request.body);
  ctx.status = answer.statusCode;
  ctx.set('content-type', answer.headers['content-type']);
  if (ctx.request.body.stream) {
    ctx.body = Readable.from(events(answer), { objectMode: false });
    return;
  }
  const pieces = [];
  for await (const piece of answer) pieces.push(piece);
  ctx.body = JSON.parse(Buffer.concat(pieces).toString());
});

const app = new Koa();
app.silent = true;
app.use(bodyParser());
app.use(router.routes());
const server = app.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
server.keepAliveTimeout = 60_000;
process.on('disconnect', () => process.exit());
