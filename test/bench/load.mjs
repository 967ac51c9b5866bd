// The callers.
import { Agent, request } from 'node:http';

const body = (kind, stream) => JSON.stringify({ model: 'assistant', stream, messages: [{ role: 'user', content: kind }] });

export const kinds = {
  json: { body: body('json', false), complete: (text) => text.includes('token099') },
  burst: { body: body('burst', true), complete: (text) => text.includes('token099') && text.endsWith('data: [DONE]\n\n') },
};

/** `count` requests by `callers` at once. @throws where an answer is not whole. */
export async function send(port, kind, count, callers) {
  const agent = new Agent({ keepAlive: true, maxSockets: callers });
  let left = count;
  const caller = async () => {
    while (left-- > 0) {
      const text = await one(agent, port, kind.body);
      if (!kind.complete(text)) throw new Error(`an answer is not whole: ${text.slice(-200)}`);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  agent.destroy();
}

/** Opens `count` streams that hardly say anything, and returns what closes them. */
export async function open(port, count) {
  const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });
  const requests = [];
  for (let opened = 0; opened < count; opened += 50) {
    await Promise.all(
      Array.from({ length: 50 }, () => {
        const { promise, resolve, reject } = Promise.withResolvers();
        const one = post(agent, port, body('slow', true), (answer) => {
          answer.on('error', () => {});
          answer.on('data', (piece) => String(piece).includes('token000') && resolve());
        });
        one.on('error', reject);
        requests.push(one);
        return promise;
      }),
    );
  }
  return () => {
    for (const one of requests) one.destroy();
  };
}

function one(agent, port, text) {
  return new Promise((resolve, reject) => {
    const sent = post(agent, port, text, (answer) => {
      let whole = '';
      answer.setEncoding('utf8');
      answer.on('data', (piece) => {
        whole += piece;
      });
      answer.on('end', () => resolve(whole));
      answer.on('error', reject);
    });
    sent.on('error', reject);
  });
}

function post(agent, port, text, onAnswer) {
  const sent = request(
    {
      agent,
      host: '127.0.0.1',
      port,
      method: 'POST',
      path: '/v1/chat/completions',
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) },
    },
    onAnswer,
  );
  sent.end(text);
  return sent;
}
