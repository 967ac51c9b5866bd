// Repeats requests as fast as they are answered, on a thread of its own, and reads the answers
// without looking at them. It has a model server, whose port it posts first, for the agents of the
// attackers: it answers at once and reads no request. It takes the address of a server, and for
// each connection the request that it repeats (`Sent` of heavy-requests.ts), or no connections,
// which ends the flood. It posts the number of each status then.
import { Agent, createServer, request } from 'node:http';
import { parentPort } from 'node:worker_threads';
import { WebSocket } from 'ws';

const LAST = /"type":"(response\.(completed|failed|incomplete)|error|svc:\w+)"/;
let flood;

function send({ port, agent }, { method, path, headers, body }) {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, agent, method, path, headers }, (response) => {
      response.resume();
      response.once('close', () => resolve(String(response.statusCode)));
    });
    sent.once('error', () => resolve('connection'));
    sent.end(body);
  });
}

/** One message, and the events up to the last one for it. */
function say(socket, message) {
  return new Promise((resolve) => {
    const end = (what) => {
      socket.off('message', onMessage);
      socket.off('close', onClose);
      resolve(what);
    };
    const onClose = () => end('connection');
    const onMessage = (data) => {
      const [, type] = LAST.exec(data.subarray(0, 200).toString()) ?? [];
      if (type) end(type);
    };
    socket.on('message', onMessage);
    socket.once('close', onClose);
    if (socket.readyState === WebSocket.OPEN) socket.send(message);
    else if (socket.readyState === WebSocket.CONNECTING) socket.once('open', () => socket.send(message));
    else onClose();
  });
}

async function repeat(own, sent) {
  let socket;
  while (own === flood) {
    if (sent.message !== undefined && (!socket || socket.readyState > WebSocket.OPEN)) {
      socket = new WebSocket(`ws://127.0.0.1:${own.port}${sent.path}`, { headers: sent.headers, perMessageDeflate: false });
      socket.on('error', () => {});
    }
    const status = socket ? await say(socket, sent.message) : await send(own, sent);
    own.statuses[status] = (own.statuses[status] ?? 0) + 1;
    if (status === 'connection') await new Promise((resolve) => setTimeout(resolve, 20));
  }
  socket?.terminate();
}

const USAGE = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
const ANSWER = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
  usage: USAGE,
});
const CHUNK = JSON.stringify({ choices: [{ index: 0, delta: { content: 'ok' }, finish_reason: 'stop' }], usage: USAGE });

const models = createServer((asked, answer) => {
  let tail = '';
  asked.on('data', (data) => {
    tail = data.subarray(-500).toString();
  });
  asked.on('end', () => {
    const streams = tail.includes('"stream":true');
    answer.writeHead(200, { 'content-type': streams ? 'text/event-stream' : 'application/json' });
    answer.end(streams ? `data: ${CHUNK}\n\ndata: [DONE]\n\n` : ANSWER);
  });
});
models.listen(0, '127.0.0.1', () => parentPort.postMessage(models.address().port));

parentPort.on('message', ({ port, connections }) => {
  const before = flood;
  flood = { port, agent: new Agent({ keepAlive: true }), statuses: {} };
  for (const sent of connections) void repeat(flood, sent);
  before?.agent.destroy();
  if (connections.length === 0) parentPort.postMessage(before.statuses);
});
