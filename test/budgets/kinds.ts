import { once } from 'node:events';
import { Agent, request } from 'node:http';
import type { Test } from 'tap';
import { WebSocket } from 'ws';
import { chatStep } from '../bench/coding-agent.mjs';

type Body = Readonly<Record<string, unknown>>;
/** Runs one turn, and throws if its answer is not complete. */
type RunTurn = () => Promise<void>;

/** A kind of turn. */
interface Kind {
  /** Turns of a measurement: what they allocate fits into the young generation. */
  readonly turns: number;
  readonly open: (t: Test, port: number) => RunTurn | Promise<RunTurn>;
}

const asked = (content: string) => [{ role: 'user', content }];
const chat = (fields: Body, turns = 60): Kind => ({
  turns,
  open: (t, port) => posting(t, port, '/v1/chat/completions', () => fields),
});
/**
 * One conversation that grows would make each turn dearer, so each session has a few turns only.
 * The first one creates it.
 */
const session = (fields: Body, turns = 1): Kind => ({
  turns: 60,
  open: (t, port) => {
    let sent = 0;
    const sessionId = () => `${fields.stream === true}-${turns}-${String(Math.floor(sent++ / turns)).padStart(6, '0')}`;
    return posting(t, port, '/v1/chat/completions', () => ({ ...fields, session_id: sessionId() }));
  },
});

/** Answers have 100 tokens, streamed in one burst. */
export const KINDS: Readonly<Record<string, Kind>> = {
  'JSON turn': chat({ model: 'assistant', messages: asked('json') }),
  'streamed turn': chat({ model: 'assistant', messages: asked('burst'), stream: true }),
  'turn with one tool call': chat({ model: 'clerk', messages: asked('tool') }),
  'session turn, JSON': session({ model: 'assistant', messages: asked('json') }),
  'five turns of a session, JSON, each': session({ model: 'assistant', messages: asked('json') }, 5),
  'session turn, streamed': session({ model: 'assistant', messages: asked('burst'), stream: true }),
  'Messages turn, streamed': {
    turns: 60,
    open: (t, port) =>
      posting(t, port, '/v1/messages', () => ({
        model: 'assistant',
        max_tokens: 1_000,
        messages: asked('burst'),
        stream: true,
      })),
  },
  'Responses turn on a socket': { turns: 60, open: onSocket },
  'step of a coding agent': chat(chatStep, 15),
};

function posting(t: Test, port: number, path: string, next: () => Body): RunTurn {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  return () =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify(next());
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      const sent = request({ agent, host: '127.0.0.1', port, method: 'POST', path, headers }, (reply) => {
        let text = '';
        reply.setEncoding('utf8').on('data', (piece) => {
          text += piece;
        });
        reply.once('error', reject);
        reply.once('end', () => {
          if (reply.statusCode === 200 && text.includes('token099')) resolve();
          else reject(new Error(`${path} answered ${reply.statusCode}: ${text.slice(-300)}`));
        });
      });
      sent.once('error', reject);
      sent.end(body);
    });
}

async function onSocket(t: Test, port: number): Promise<RunTurn> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/responses`, { perMessageDeflate: false });
  t.teardown(() => socket.terminate());
  await once(socket, 'open');
  const message = JSON.stringify({ type: 'response.create', model: 'assistant', input: 'burst', store: false });
  return () =>
    new Promise((resolve, reject) => {
      socket.onmessage = ({ data }) => {
        if (String(data).startsWith('{"type":"response.completed"')) resolve();
        else if (/^\{"type":"(error|response\.failed)"/.test(String(data))) reject(new Error(String(data)));
      };
      socket.send(message);
    });
}
