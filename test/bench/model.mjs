// The scripted model server. What the last message says decides the answer: `json`, `burst` or `slow`.
import { createServer } from 'node:http';

const TOKENS = 100;
const word = (i) => ` token${String(i).padStart(3, '0')}`;
const text = Array.from({ length: TOKENS }, (_, i) => word(i)).join('');
const usage = { prompt_tokens: 12, completion_tokens: TOKENS, total_tokens: 12 + TOKENS };
const head = { id: 'chatcmpl-bench', created: 1763695677, model: 'bench' };
const chunk = (delta, finish_reason = null) =>
  `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, logprobs: null, finish_reason }] })}\n\n`;

const json = JSON.stringify({
  ...head,
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: text }, logprobs: null, finish_reason: 'stop' }],
  usage,
});
const first = chunk({ role: 'assistant', content: '' });
const last = `${chunk({}, 'stop')}data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [], usage })}\n\ndata: [DONE]\n\n`;
const burst = first + Array.from({ length: TOKENS }, (_, i) => chunk({ content: word(i) })).join('') + last;
const sse = { 'content-type': 'text/event-stream; charset=utf-8' };

const server = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (piece) => {
    body += piece;
  });
  request.on('end', () => {
    if (body.includes('"slow"')) {
      response.writeHead(200, sse);
      response.write(first + chunk({ content: word(0) }));
      const timer = setInterval(() => response.write(chunk({ content: word(1) })), 20_000);
      response.on('close', () => clearInterval(timer));
    } else if (body.includes('"burst"')) {
      response.writeHead(200, sse);
      response.end(burst);
    } else {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(json) });
      response.end(json);
    }
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('disconnect', () => process.exit());
