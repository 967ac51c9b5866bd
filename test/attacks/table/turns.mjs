import { setTimeout as wait } from 'node:timers/promises';
import { size } from './format.mjs';
import { list, MIB, never, user } from './values.mjs';

/** Turns, and the conversations, answers and approvals that they load and keep. */
export const TURNS = {
  'an item of 1 MB named 400 times': async (s) => {
    s.queue.push({ text: 'x'.repeat(MIB) });
    const { output } = await s.setUp('/v1/responses', { model: 'assistant', input: 'Hi' });
    const input = [...Array(400).fill({ type: 'item_reference', id: output[0].id }), { role: 'user', content: 'And?' }];
    return () => Promise.all([1, 2, 3].map(() => s.post('/v1/responses', { model: 'assistant', input, store: false })));
  },
  'ten turns of large conversations': async (s) => {
    const [id] = await s.conversation();
    const forks = [];
    for (let n = 0; n < 9; n++) forks.push((await s.setUp(`/v1/conversations/${id}/fork`, {})).id);
    s.otherwise = { text: ['A', never] };
    return async () => {
      const turns = [id, ...forks].map((conversation) => s.chat({ model: 'assistant', conversation, messages: user('Hi') }));
      await Promise.race([Promise.all(turns), wait(8_000)]);
      const sizes = s.models.requests.map(({ body }) => (body.model === 'fast' ? JSON.stringify(body).length : 0));
      s.note = `${size(Math.max(...sizes))} to the model at most`;
    };
  },
  'eight continuations of a large response': async (s) => {
    const [, previous_response_id] = await s.conversation();
    s.otherwise = { text: ['A', never] };
    return () =>
      Promise.all(
        Array.from({ length: 8 }, () =>
          s.post('/v1/responses', { model: 'assistant', input: 'Hi', previous_response_id, store: false }),
        ),
      );
  },
  '60 MB of images of a tool': (s) => async () => {
    s.queue.push({ toolCalls: [{ name: 'own__shoot', arguments: {} }] });
    await s.chat({ model: 'caller', messages: user('Look'), session_id: 's' });
  },
  'a compaction beyond the token limit': (s) => async () => {
    const input = Array.from({ length: 1_000 }, (_, n) => ({
      role: n % 2 ? 'assistant' : 'user',
      content: 'word '.repeat(1_000),
    }));
    await s.post('/v1/responses/compact', { model: 'limited', input });
    const sent = s.models.requests.findLast(({ body }) => body.model === 'fast')?.body ?? '';
    s.note = `${size(JSON.stringify(sent).length)} sent to the model`;
  },
  'S-66: 1,000 repetitions of an answer of 300 KB': async (s) => {
    s.queue.push({ text: Array(60).fill('word '.repeat(1_000)) });
    const body = { model: 'assistant', stream: true, messages: user('Hi') };
    const send = () => s.post('/v1/chat/completions', body, { 'idempotency-key': 'one' });
    await send();
    return () => Promise.all(list(1_000, send));
  },
  'S-66: 1,000 that join a running turn of 300 KB': (s) => async () => {
    s.otherwise = { text: [...Array(60).fill('word '.repeat(1_000)), wait(5_000)] };
    const body = { model: 'assistant', stream: true, session_id: 'joined', messages: user('Hi') };
    await Promise.all(list(1_000, () => s.chat(body)));
    s.note = `${s.models.requests.filter(({ body }) => body.model === 'fast').length} turns`;
  },
  'S-67: 30 sockets that watch a message of 9 MB': async (s) => {
    const { id } = await s.setUp('/v1/conversations', { agent: 'assistant', id: 'watched' });
    await Promise.all(list(30, () => s.watch(id)));
    return () => s.chat({ model: 'assistant', session_id: 'watched', messages: user('x'.repeat(9 * MIB)) });
  },
  'S-69: 50 calls that wait in a turn of 1 MB, approved': async (s) => {
    // Calls that repeat each other would not wait.
    s.queue.push({ toolCalls: list(50, (at) => ({ name: 'own__send', arguments: { at } })) });
    const schema = { type: 'object', description: 'x'.repeat(MIB), properties: {}, additionalProperties: false };
    const text = { format: { type: 'json_schema', name: 'large', schema } };
    const { id, output = [] } = await s.setUp('/v1/responses', { model: 'asking', input: 'Send', text });
    s.note = `${output.filter(({ type }) => type === 'mcp_approval_request').length} waited`;
    return async () => {
      const asked = output.filter(({ type }) => type === 'mcp_approval_request');
      const decisions = asked.map(({ id }) => ({ type: 'mcp_approval_response', approval_request_id: id, approve: true }));
      const lists = list(20, () => s.get('/v1/approvals?limit=100'));
      await Promise.all([...lists, s.post('/v1/responses', { model: 'asking', input: decisions, previous_response_id: id })]);
    };
  },
  'S-70: 20 continuations of 9 MB that are carried': async (s) => {
    const carried = { type: 'message', role: 'developer', content: 'y'.repeat(9 * MIB) };
    const { id: previous_response_id } = await s.setUp('/v1/responses', { model: 'assistant', input: [carried, ...user('Hi')] });
    s.otherwise = { text: ['A', never] };
    return () => Promise.all(list(20, () => s.post('/v1/responses', { model: 'assistant', input: 'Hi', previous_response_id })));
  },
};
