// The scripted model server. The last message decides the answer: `json`, `burst`, `paced`, `slow`,
// `flood`, or `tool`, which calls the clock before it answers.
import { createServer } from 'node:http';

const TOKENS = 100;
const PACE = 20;
const word = (i) => ` token${String(i).padStart(3, '0')}`;
const text = Array.from({ length: TOKENS }, (_, i) => word(i)).join('');
const usage = { prompt_tokens: 12, completion_tokens: TOKENS, total_tokens: 12 + TOKENS };
const head = { id: 'chatcmpl-bench', created: 1763695677, model: 'bench' };
const chunk = (delta, finish_reason = null) =>
  `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, logprobs: null, finish_reason }] })}\n\n`;
const completion = (message, finish_reason) =>
  JSON.stringify({ ...head, object: 'chat.completion', choices: [{ index: 0, message, logprobs: null, finish_reason }], usage });

const json = completion({ role: 'assistant', content: text }, 'stop');
const call = { id: 'call_1', type: 'function', function: { name: 'clock', arguments: '{"timeZone":"Europe/Berlin"}' } };
const toolCall = completion({ role: 'assistant', content: null, tool_calls: [call] }, 'tool_calls');
const first = chunk({ role: 'assistant', content: '' });
const last = `${chunk({}, 'stop')}data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices: [], usage })}\n\ndata: [DONE]\n\n`;
const tokens = Array.from({ length: TOKENS }, (_, i) => chunk({ content: word(i) }));
const sse = { 'content-type': 'text/event-stream; charset=utf-8' };

function answer(response, body) {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

/** All tokens at once. Each event is an HTTP chunk of its own, as model servers send them. */
function burst(response) {
  response.writeHead(200, sse);
  for (const event of [first, ...tokens]) response.write(event);
  response.end(last);
}

/** One token every 20 ms: 50 tokens per second. */
function pace(response) {
  response.writeHead(200, sse);
  response.write(first);
  let sent = 0;
  const timer = setInterval(() => {
    if (sent < TOKENS) return response.write(chunk({ content: word(sent++) }));
    clearInterval(timer);
    response.end(last);
  }, PACE);
  response.on('close', () => clearInterval(timer));
}

/** One token, then one every 20 seconds. */
function crawl(response) {
  response.writeHead(200, sse);
  response.write(first + chunk({ content: word(0) }));
  const timer = setInterval(() => response.write(chunk({ content: word(1) })), 20_000);
  response.on('close', () => clearInterval(timer));
}

/** Tokens without an end, as fast as they are read. */
function flood(response) {
  response.writeHead(200, sse);
  const many = tokens.join('');
  const fill = () => {
    while (!response.destroyed && response.write(many));
  };
  response.on('drain', fill);
  fill();
}

const server = createServer((request, response) => {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (piece) => {
    body += piece;
  });
  request.on('end', () => {
    const kind = /.*"role":"user","content":"(\w+)/s.exec(body)?.[1];
    if (kind === 'burst') burst(response);
    else if (kind === 'paced') pace(response);
    else if (kind === 'slow') crawl(response);
    else if (kind === 'flood') flood(response);
    else answer(response, kind === 'tool' && !body.includes('"role":"tool"') ? toolCall : json);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('disconnect', () => process.exit());
