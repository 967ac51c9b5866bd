// Repeats requests as fast as they are answered, on a thread of its own, and reads the answers
// without looking at them. It has a model server, whose port it posts first, for the agents of the
// attackers: it answers at once and reads no request. It takes the address of a server, and for
// each connection the request that it repeats (`Sent` of heavy-requests.ts), or no connections,
// which ends the flood. It posts the number of each status then.
//
// Its thread has a lower priority than the server and the innocent caller. On a machine of two
// cores it would take a third of the time from them, and the test would measure the machine: what
// callers share is the server alone. Their connections are never idle, so the server has all the
// work that it takes.
import { Agent, createServer, request } from 'node:http';
import { getPriority, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { WebSocket } from 'ws';

/** The last event for a message. */
const LAST = /"type":"(response\.(?:completed|failed|incomplete)|error|svc:pong|svc:conversation\.watched)"/;
const RESPONSE = /"response":\{"id":"(\w+)"/;
let flood;

setPriority(Math.min(getPriority() + 10, 19)); // on Linux, of this thread alone

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

/** Sends messages, and reads the events up to the last one for them. @returns its type. */
function say(socket, messages) {
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
      if (type === 'response.completed') socket.response = RESPONSE.exec(data)?.[1];
    };
    socket.on('message', onMessage);
    socket.once('close', onClose);
    const sendAll = () => {
      for (const message of messages) socket.send(message);
    };
    if (socket.readyState === WebSocket.OPEN) sendAll();
    else if (socket.readyState === WebSocket.CONNECTING) socket.once('open', sendAll);
    else onClose();
  });
}

async function repeat(own, sent) {
  let socket;
  while (own === flood) {
    if (sent.messages && (!socket || socket.readyState > WebSocket.OPEN)) {
      socket = new WebSocket(`ws://127.0.0.1:${own.port}${sent.path}`, { headers: sent.headers, perMessageDeflate: false });
      socket.on('error', () => {});
      if (sent.opening) await say(socket, [sent.opening]);
    }
    const messages = sent.messages?.map((message) => message.replace('RESPONSE', socket.response));
    const status = socket ? await say(socket, messages) : await send(own, sent);
    own.statuses[status] = (own.statuses[status] ?? 0) + 1;
    if (status === 'connection') await new Promise((resolve) => setTimeout(resolve, 20));
  }
  socket?.terminate();
}

/** What a model is asked for that answers with much. */
const AT_LENGTH = 'Answer at length';
const MUCH = 'word '.repeat(10_000); // the events of eight are kept on a small heap
const USAGE = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
const bodyOf = (choice) => JSON.stringify({ choices: [{ index: 0, ...choice, finish_reason: 'stop' }], usage: USAGE });
const answerOf = (content) => bodyOf({ message: { role: 'assistant', content } });
const streamOf = (content) => `data: ${bodyOf({ delta: { content } })}\n\ndata: [DONE]\n\n`;
const ANSWERS = Object.fromEntries(
  Object.entries({ ok: 'ok', much: MUCH }).map(([name, content]) => [name, [answerOf(content), streamOf(content)]]),
);

const models = createServer((asked, answer) => {
  let tail = '';
  asked.on('data', (data) => {
    tail = data.subarray(-500).toString();
  });
  asked.on('end', () => {
    const streams = tail.includes('"stream":true');
    answer.writeHead(200, { 'content-type': streams ? 'text/event-stream' : 'application/json' });
    answer.end(ANSWERS[tail.includes(AT_LENGTH) ? 'much' : 'ok'][streams ? 1 : 0]);
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
