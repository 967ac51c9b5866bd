// The callers.
import { Agent, request } from 'node:http';
import { chatStep, messagesStep } from './coding-agent.mjs';

/** A kind of request: what it asks, and whether its answer is complete. */
function kind(content, { model = 'assistant', stream = false } = {}) {
  const complete = (text) => text.includes('token099') && (!stream || text.endsWith('data: [DONE]\n\n'));
  return { fields: { model, stream, messages: [{ role: 'user', content }] }, complete };
}

export const kinds = {
  json: kind('json'),
  burst: kind('burst', { stream: true }),
  paced: kind('paced', { stream: true }),
  slow: kind('slow', { stream: true }),
  tool: kind('tool', { model: 'clerk' }),
  recent: kind('json', { model: 'recent' }),
  messagesStep: { path: '/v1/messages', fields: messagesStep, complete: (text) => text.includes('token099') },
  chatStep: { fields: chatStep, complete: (text) => text.includes('token099') },
};

/**
 * Sends `count` requests, `callers` at a time. @throws if an answer is incomplete.
 *
 * @param session returns the session of a request, by its caller and the caller's number of
 *   requests so far.
 */
export async function send(port, kind, { count, callers, session = () => undefined }) {
  const { fields, complete } = kind;
  const agent = new Agent({ keepAlive: true, maxSockets: callers });
  const plain = JSON.stringify(fields);
  let left = count;
  const caller = async (_, number) => {
    for (let sent = 0; left-- > 0; sent++) {
      const session_id = session(number, sent);
      const body = session_id === undefined ? plain : JSON.stringify({ ...fields, session_id });
      const { text } = await exchange(agent, port, body, kind);
      if (!complete(text)) throw new Error(`incomplete answer: ${text.slice(-300)}`);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  agent.destroy();
}

/** Milliseconds of `count` requests, one after the other: to the first token and to the end. */
export async function latencies(port, kind, count) {
  const { fields, complete } = kind;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const body = JSON.stringify(fields);
  const all = [];
  for (let sent = 0; sent < count; sent++) {
    const { text, first, end } = await exchange(agent, port, body, kind);
    if (!complete(text)) throw new Error(`incomplete answer: ${text.slice(-300)}`);
    all.push({ first, end });
  }
  agent.destroy();
  return all;
}

/** Opens `count` streams that stay open, and returns a function that closes them. */
export async function open(port, count, kind = kinds.slow) {
  const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });
  const body = JSON.stringify(kind.fields);
  const requests = [];
  for (let opened = 0; opened < count; opened += 50) {
    await Promise.all(
      Array.from({ length: Math.min(50, count - opened) }, () => {
        const { promise, resolve, reject } = Promise.withResolvers();
        const sent = post(agent, port, body, kind, (answer) => {
          answer.on('error', () => {});
          answer.on('data', (piece) => String(piece).includes('token000') && resolve());
        });
        sent.on('error', reject);
        requests.push(sent);
        return promise;
      }),
    );
  }
  return () => {
    for (const sent of requests) sent.destroy();
  };
}

export function exchange(agent, port, body, kind) {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    let first;
    const sent = post(agent, port, body, kind, onAnswer);
    function onAnswer(answer) {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece) => {
        text += piece;
        if (first === undefined && text.includes('token000')) first = performance.now() - start;
      });
      answer.on('end', () => resolve({ text, first, end: performance.now() - start }));
      answer.on('error', reject);
    }
    sent.on('error', reject);
  });
}

function post(agent, port, body, { path = '/v1/chat/completions', headers: own }, onAnswer) {
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...own };
  const where = { agent, host: '127.0.0.1', port, method: 'POST', path, headers };
  const sent = request(where, onAnswer);
  sent.end(body);
  return sent;
}
